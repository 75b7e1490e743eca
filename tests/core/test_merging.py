"""Many skills into one, by a model that is asked once for each sample."""

from wer.configuration import MergeConfig
from wer.loop.merging import Merger
from wer.records import Reply, Skill
from wer.store import Store
from wer.together import together

SKILLS = [Skill(name="a", description="A.", body="1. one"), Skill(name="b", description="B.", body="1. two")]


class Writer:
    """A model that remembers the seeds it was asked with."""

    def __init__(self):
        self.identity = {"model": "writer"}
        self.seeds = []

    async def complete(self, messages, tools, sampling):
        self.seeds.append(sampling.seed)
        text = "<think>x</think><skill>\nname: m\ndescription: M.\n## Workflow\n1. one\n</skill>"
        return Reply(text=text)


def merger(folder, writer):
    store = Store(folder / "wer.sqlite", create=True)
    return Merger(
        model=writer, store=store, settings=MergeConfig(), seed=0, temperature=0.9, unreadable=print
    )


async def test_domains_that_merge_the_same_skills_side_by_side_have_a_sample_each(tmp_path):
    writer = Writer()
    merging = merger(tmp_path, writer)

    await together(merging.merge(SKILLS, name=name) for name in ("small", "large"))
    await together(merging.merge(SKILLS, name=name) for name in ("small", "large"))

    assert len(writer.seeds) == len(set(writer.seeds)) == 2
