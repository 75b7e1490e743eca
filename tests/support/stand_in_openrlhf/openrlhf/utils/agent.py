"""The agent interface of OpenRLHF 0.11.2, as far as WER's agent uses it."""


class SingleTurnAgentExecutor:
    def __init__(self, remote_rm_url=None):
        assert remote_rm_url is None

    async def execute(
        self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None
    ):
        tokens = list(prompt.encode())
        found = await llm_engine.generate(tokens, sampling_params)
        answer = found.outputs[0]
        return {
            "observation_tokens": tokens + list(answer.token_ids),
            "action_ranges": [(len(tokens), len(tokens) + len(answer.token_ids))],
            "rollout_log_probs": None,
            "truncated": answer.finish_reason == "length",
        }
