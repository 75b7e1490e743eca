"""System calls that an episode has no business with, by number for x86_64 and aarch64.

Numbers from the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h``. None: the architecture has no such call.
"""

from __future__ import annotations

# Landlock does not cover chmod, chown, times and attributes (its documentation, "current
# limitations"), and a kernel without Landlock covers nothing: hence the file calls here.
# fmt: off
DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # new processes, threads and programs
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220),
    "execve": (59, 221), "execveat": (322, 281),
    # networks of every family
    "socket": (41, 198),
    # memory that outlives an episode or escapes its limit
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "memfd_create": (319, 279), "io_setup": (206, 0),
    # changes to files
    "creat": (85, None), "truncate": (76, 45),
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "quotactl": (179, 60),
    "swapon": (167, 224), "swapoff": (168, 225),
    # the kernel and the machine
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "acct": (163, 89), "syslog": (103, 116), "vhangup": (153, 58), "personality": (135, 92),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "lookup_dcookie": (212, 18),
}
# fmt: on

# From 424 on, numbers are common to all architectures. These are harmless; every other
# one (io_uring, pidfd, clone3, openat2, the new mount interface, and whatever a later
# kernel adds) does not exist for an episode, and libraries fall back to the older calls.
FIRST_COMMON = 424
HARMLESS = {"close_range": 436, "faccessat2": 439, "epoll_pwait2": 441, "futex_waitv": 449}

# Calls whose arguments decide.
OPEN, OPENAT = (2, None), (257, 56)
FCNTL, IOCTL, PRLIMIT = (72, 25), (16, 29), (302, 261)
CLONE, PRCTL = (56, 220), (157, 167)

# What a companion may do and an episode may not. Landlock keeps these to its own folder.
COMPANION_MAY = frozenset(
    {
        *("creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat"),
        *("rmdir", "link", "linkat", "symlink", "symlinkat"),
    }
)
