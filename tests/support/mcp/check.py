def check(task, end):
    return end.state == task.expect
