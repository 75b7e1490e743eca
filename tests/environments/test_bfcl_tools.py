import ast
import copy
import zipfile

from wer_bfcl import benchmark
from wer_bfcl.tools import tool_spec


def official_conversion(wheels):
    """The benchmark's own type conversion, taken out of a module whose imports need fifty packages."""
    with zipfile.ZipFile(next(wheels.glob("bfcl_eval-*.whl"))) as wheel:
        source = wheel.read("bfcl_eval/model_handler/utils.py").decode()
        mappings = wheel.read("bfcl_eval/constants/type_mappings.py").decode()
    names: dict = {}
    exec(mappings, names)
    tree = ast.parse(source)
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "_cast_to_openai_type"
    ]
    exec(compile(tree, "official", "exec"), names)
    return lambda properties: names["_cast_to_openai_type"](
        copy.deepcopy(properties), names["GORILLA_TO_OPENAPI"]
    )


def test_every_schema_is_the_one_that_the_official_runner_offers(bfcl_wheels):
    convert = official_conversion(bfcl_wheels)
    docs = [doc for found in benchmark.load().docs.values() for doc in found]

    ours = [tool_spec(doc).parameters for doc in docs]

    assert len(docs) == 128
    assert ours == [
        {
            "type": "object",
            "properties": convert(doc["parameters"]["properties"]),
            "required": doc["parameters"]["required"],
        }
        for doc in docs
    ]


def test_descriptions_say_that_the_syntax_is_python():
    doc = benchmark.load().docs["MathAPI"][0]

    assert tool_spec(doc).description == doc["description"] + (
        " Note that the provided function is in Python 3 syntax."
    )
