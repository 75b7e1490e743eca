import wer
from desk import agent  # agent(task, skill, seed) -> wer.Outcome(messages, state)


def check(task, end):
    return end.state == task.expect


run = wer.refine(tasks="tasks.jsonl", check=check, executor=agent, writer="openai/gpt-4o-mini")
print(run.table, run.diff, sep="\n")
run.best.save("skills")
