import pytest
import torch
from support import tiny_writer
from support.tiny_writer import PaidByLetters
from transformers import Qwen2Config, Qwen2ForCausalLM

from wer.errors import ConfigError
from wer_grpo.optimizer import Grpo
from wer_grpo.sources import writer_folder
from wer_torch.weights import tie_again


def untied_model():
    config = Qwen2Config(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=False,
    )
    return Qwen2ForCausalLM(config)


def silent(line):
    pass


def test_a_matrix_that_quantising_split_in_two_becomes_one_again():
    model = untied_model()
    with torch.no_grad():
        head = model.lm_head.weight
        model.model.embed_tokens.weight.copy_(head * (1 + 0.01 * torch.randn_like(head)))

    tie_again(model)

    assert model.model.embed_tokens.weight is model.lm_head.weight
    assert model.config.tie_word_embeddings


def test_two_different_matrices_stay_two():
    model = untied_model()

    tie_again(model)

    assert model.model.embed_tokens.weight is not model.lm_head.weight


def test_a_name_that_the_catalogue_lacks_is_refused():
    with pytest.raises(ConfigError, match="no model named 'qwen9'"):
        writer_folder("local/qwen9", silent)


def test_a_folder_is_taken_as_it_is(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")

    assert writer_folder(str(folder), silent) == str(folder)


def test_a_writer_without_chat_template_is_refused_before_anything_is_paid(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    (folder / "chat_template.jinja").unlink()

    with pytest.raises(ConfigError, match="no chat template"):
        Grpo(tiny_writer.setup(folder))


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('no system role') }}", "{{ messages[0].no.such }}", "{% for %}"]
)
def test_a_writer_whose_chat_template_fails_is_refused_before_anything_is_paid(tmp_path, template):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    (folder / "chat_template.jinja").write_text(template)

    with pytest.raises(ConfigError, match=r"chat template of the writer .* refuses a request"):
        Grpo(tiny_writer.setup(folder))


def test_a_writer_without_a_tokenizer_is_refused_before_anything_is_paid(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    for file in folder.glob("tokenizer*"):
        file.unlink()

    with pytest.raises(ConfigError, match="its vocabulary is missing"):
        Grpo(tiny_writer.setup(folder))


def test_a_writer_whose_tokenizer_is_damaged_is_refused_before_anything_is_paid(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    (folder / "tokenizer.json").write_text("{")

    with pytest.raises(ConfigError, match="cannot read the tokenizer"):
        Grpo(tiny_writer.setup(folder))


async def test_a_writer_whose_weights_are_cut_short_is_refused(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])

    with pytest.raises(ConfigError, match="cannot train the writer"):
        await Grpo(tiny_writer.setup(folder)).propose(tiny_writer.states(1), 2, 0)


async def test_a_writer_that_scales_its_logits_is_refused(tmp_path):
    folder = tiny_writer.make_folder(tmp_path / "writer")
    config = folder / "config.json"
    config.write_text(config.read_text().replace("{", '{"logit_scale": 0.5,', 1))

    with pytest.raises(ConfigError, match="logit_scale"):
        await Grpo(tiny_writer.setup(folder)).propose(tiny_writer.states(1), 2, 0)


@pytest.mark.llm
@pytest.mark.slow
async def test_the_catalogue_model_writes_and_learns(tmp_path):
    rows = {}
    setup = tiny_writer.setup(
        "local/qwen2.5-coder-0.5b",
        options={"dtype": "auto", "threads": 0, "lora_rank": 8},
        max_prompt_tokens=2000,
        max_response_tokens=24,
        top_k=50,
        k=2,
        record=lambda step, metrics: rows.update({step: metrics}),
    )
    optimizer = Grpo(setup)

    outcome = await optimizer.run_phase(tiny_writer.states(1), PaidByLetters(), tmp_path / "phase")

    assert all(each.candidate.text for each in outcome.experiences)
    assert rows[0]["steps"] == 2.0
    assert rows[0]["grad_norm"] > 0
