-- The desk of Larkfield College on a Monday morning. A task changes some rows before its episode begins.

CREATE TABLE people (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    department TEXT NOT NULL,
    manager TEXT REFERENCES people (id),
    employment TEXT NOT NULL DEFAULT 'staff' CHECK (employment IN ('staff', 'contractor', 'leaving')),
    badge TEXT NOT NULL,
    admin INTEGER NOT NULL DEFAULT 0,
    locked INTEGER NOT NULL DEFAULT 0,
    alert TEXT,
    passwords INTEGER NOT NULL DEFAULT 1, -- how many the account has had
    approves INTEGER NOT NULL DEFAULT 1   -- what this person answers as a manager
);

CREATE TABLE groups (
    id TEXT PRIMARY KEY,
    restricted INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE members (
    id TEXT PRIMARY KEY, -- PERSON/GROUP
    person TEXT NOT NULL REFERENCES people (id),
    "group" TEXT NOT NULL REFERENCES groups (id)
);

CREATE TABLE devices (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('laptop', 'phone')),
    place TEXT NOT NULL DEFAULT 'in use' CHECK (place IN ('in use', 'in stock', 'in repair', 'retired', 'lost')),
    holder TEXT REFERENCES people (id),
    bought TEXT NOT NULL,
    warranty_until TEXT NOT NULL,
    price INTEGER NOT NULL
);

CREATE TABLE priorities (
    id TEXT PRIMARY KEY,
    hours INTEGER NOT NULL
);

CREATE TABLE tickets (
    id TEXT PRIMARY KEY,
    requester TEXT NOT NULL REFERENCES people (id),
    category TEXT NOT NULL CHECK (category IN ('account', 'access', 'device')),
    priority TEXT NOT NULL REFERENCES priorities (id),
    due TEXT NOT NULL,
    summary TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'escalated', 'solved', 'declined')),
    verified INTEGER, -- NULL: not tried yet
    approval TEXT CHECK (approval IN ('approved', 'declined')),
    team TEXT
);

CREATE TABLE policies (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL
);

INSERT INTO people (id, name, department, manager, employment, badge, admin) VALUES
    ('E-1000', 'Tomasz Zieliński', 'Direction', NULL, 'staff', '1180', 0),
    ('E-1001', 'Ingrid Halvorsen', 'Finance', 'E-1000', 'staff', '2204', 0),
    ('E-1002', 'Łukasz Wójcik', 'Finance', 'E-1001', 'staff', '4471', 0),
    ('E-1003', 'Zoë Brännström', 'Finance', 'E-1001', 'contractor', '3958', 0),
    ('E-1004', 'Nina Okafor', 'Finance', 'E-1001', 'staff', '7712', 0),
    ('E-1010', 'Marta Delacroix', 'Library', 'E-1000', 'staff', '5036', 0),
    ('E-1011', 'Nina Okonkwo', 'Library', 'E-1010', 'staff', '8125', 0),
    ('E-1012', 'João Ferreira', 'Library', 'E-1010', 'staff', '6640', 0),
    ('E-1013', 'Sören Lindqvist', 'Library', 'E-1010', 'leaving', '9317', 0),
    ('E-1020', 'Hamid Rahimi', 'IT', 'E-1000', 'staff', '1409', 1),
    ('E-1021', 'Ayşe Demir', 'IT', 'E-1020', 'staff', '2853', 1),
    ('E-1022', 'Pádraig Nolan', 'IT', 'E-1020', 'contractor', '6071', 0),
    ('E-1030', 'Chloé Martin', 'Admissions', 'E-1000', 'staff', '3392', 0),
    ('E-1031', 'Jürgen Weiß', 'Admissions', 'E-1030', 'staff', '7546', 0),
    ('E-1032', 'Mei Lin', 'Admissions', 'E-1030', 'staff', '4908', 0),
    ('E-1033', 'Björn Ólafsson', 'Admissions', 'E-1030', 'contractor', '5561', 0);

INSERT INTO groups VALUES
    ('staff-news', 0),
    ('library-catalogue', 0),
    ('open-days', 0),
    ('finance-reports', 1),
    ('payroll', 1),
    ('applicant-files', 1);

INSERT INTO members VALUES
    ('E-1001/payroll', 'E-1001', 'payroll'),
    ('E-1001/finance-reports', 'E-1001', 'finance-reports'),
    ('E-1010/library-catalogue', 'E-1010', 'library-catalogue'),
    ('E-1030/applicant-files', 'E-1030', 'applicant-files');

INSERT INTO devices (id, kind, place, holder, bought, warranty_until, price) VALUES
    ('L-101', 'laptop', 'in use', 'E-1002', '2024-05-14', '2027-05-13', 1100),
    ('L-102', 'laptop', 'in use', 'E-1003', '2022-01-20', '2025-01-19', 980),
    ('L-103', 'laptop', 'in use', 'E-1004', '2022-11-02', '2025-11-01', 1050),
    ('L-104', 'laptop', 'in use', 'E-1010', '2023-08-30', '2026-08-29', 1240),
    ('L-105', 'laptop', 'in use', 'E-1011', '2021-09-09', '2024-09-08', 890),
    ('L-106', 'laptop', 'in use', 'E-1012', '2024-02-12', '2027-02-11', 1100),
    ('L-107', 'laptop', 'in use', 'E-1013', '2021-03-15', '2024-03-14', 870),
    ('L-108', 'laptop', 'in use', 'E-1020', '2024-10-01', '2027-09-30', 1690),
    ('L-109', 'laptop', 'in use', 'E-1020', '2023-10-01', '2026-09-30', 1500),
    ('L-110', 'laptop', 'in use', 'E-1030', '2022-06-17', '2025-06-16', 1010),
    ('L-111', 'laptop', 'in use', 'E-1031', '2023-04-04', '2026-04-03', 1120),
    ('L-112', 'laptop', 'in use', 'E-1032', '2022-09-26', '2025-09-25', 1000),
    ('L-201', 'laptop', 'in stock', NULL, '2025-09-05', '2028-09-04', 1450),
    ('L-202', 'laptop', 'in stock', NULL, '2025-06-11', '2028-06-10', 1180),
    ('L-203', 'laptop', 'in stock', NULL, '2025-03-18', '2028-03-17', 940),
    ('P-301', 'phone', 'in use', 'E-1002', '2023-02-01', '2025-01-31', 420),
    ('P-302', 'phone', 'in use', 'E-1010', '2025-05-20', '2027-05-19', 510),
    ('P-303', 'phone', 'in use', 'E-1021', '2024-12-03', '2026-12-02', 640),
    ('P-304', 'phone', 'in use', 'E-1031', '2022-07-07', '2024-07-06', 380),
    ('P-401', 'phone', 'in stock', NULL, '2025-10-10', '2027-10-09', 560),
    ('P-402', 'phone', 'in stock', NULL, '2025-08-21', '2027-08-20', 540);

INSERT INTO priorities VALUES ('P1', 4), ('P2', 8), ('P3', 40);

INSERT INTO tickets (id, requester, category, priority, due, summary, status, verified) VALUES
    ('ACC-30', 'E-1001', 'account', 'P2', '2026-02-26 17:00', 'password forgotten', 'solved', 1),
    ('GRP-17', 'E-1030', 'access', 'P3', '2026-02-27 12:00', 'open-days for a new colleague', 'declined', 1),
    ('DEV-52', 'E-1020', 'device', 'P3', '2026-03-04 16:00', 'a second monitor', 'open', 1);

INSERT INTO policies VALUES
    ('tickets', 'Every piece of work hangs on a ticket of the person who writes to us, in that person''s own name. If '
        || 'the person has an open ticket of that category, go on with it; otherwise open one. Look the person up '
        || 'first: names repeat. P1: a security matter (an alert on the account, a lost or stolen device), a danger, or '
        || 'a whole team that cannot work. P2: one person cannot sign in, or has a broken device. P3: all else, every '
        || 'request for access included. Verify the badge number before anything else on a ticket, also when you are '
        || 'going to decline. Ask a manager only where a policy says so; a manager answers once. In the end every '
        || 'ticket is solved, declined, or with the team that it was escalated to.'),
    ('accounts', 'Look at the account before you touch it. An account with an alert is neither unlocked nor given a new '
        || 'password: escalate to security. A locked account is unlocked before its password is reset. An '
        || 'administrator''s password needs the manager''s approval; if that is refused, decline. A password is reset '
        || 'for its owner alone: decline what is asked for somebody else. A badge number that is wrong goes to '
        || 'security, whatever the person says afterwards.'),
    ('access', 'Staff may join any open group. A restricted group needs the manager''s approval; if that is refused, '
        || 'decline. A contractor never joins a restricted group: escalate to data-protection without asking the '
        || 'manager. People who are leaving join no group: decline.'),
    ('devices', 'We care for a device on the request of the person who holds it, and decline what is asked by others. A '
        || 'broken device under warranty goes to repair; lend another of its kind if it was the only one of its kind '
        || 'that the person holds, and lend none otherwise. A broken device out of warranty is swapped. People who are '
        || 'leaving get no other device, lent or swapped: decline. From stock, take the one of that kind that was '
        || 'bought first. A new device of more than 1000 needs the manager''s approval, a lost device of any price '
        || 'does; if it is refused, decline. Whoever lost a device gets a new password, before the device, on an account '
        || 'ticket of P1. A battery that swells or smokes is a danger: escalate to facilities, and neither repair nor '
        || 'swap.');
