"""The agent that does nothing, where the user's turns are scripted and where a model decides them."""

from support.counting import Counting

from wer.loop.noop import NoOp
from wer.records import NO_SKILL, End, Task, Turn

SCRIPTED = Counting().tasks("small", "train")[0]
OPEN = Task(id="t", env="e", domain="d", split="test", turns=())


class Session:
    """Two turns, whatever is said."""

    def __init__(self):
        self.said = []

    async def begin(self):
        return Turn(message="first", index=0)

    async def say(self, text):
        self.said.append(text)
        return Turn(message="second", index=1) if len(self.said) == 1 else End(by="user")


class Over(Session):
    async def begin(self):
        return End(by="user", why="premature_stop")


async def test_scripted_turns_pass_in_silence():
    session = Session()

    trajectory = await NoOp().execute(SCRIPTED, NO_SKILL, session, 7)

    assert session.said == ["", ""]
    assert trajectory.messages == ("first", "second")
    assert (trajectory.end, trajectory.seed) == (End(by="user"), 7)


async def test_it_leaves_a_user_that_would_answer():
    session = Session()

    trajectory = await NoOp().execute(OPEN, NO_SKILL, session, 0)

    assert session.said == []
    assert trajectory.messages == ("first",)
    assert trajectory.end == End(by="agent", why="stopped")


async def test_an_episode_that_ends_before_it_begins_is_left_as_it_is():
    trajectory = await NoOp().execute(OPEN, NO_SKILL, Over(), 0)

    assert trajectory.messages == ()
    assert trajectory.end == End(by="user", why="premature_stop")
