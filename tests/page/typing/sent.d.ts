// What the interface sends (docs/json.md, web/board.py), as far as the page reads it. Any worker, or a file that a
// stranger has written, may be behind it: what is optional here may be missing.

declare namespace Sent {
  type Status = 'queued' | 'running' | 'blocked' | 'completed' | 'failed' | 'cancelled';
  type Need = 'needs_you' | 'review' | 'failed' | 'working' | 'queued' | 'done' | 'earlier';

  /** An answer that may be given by a button; of a permission `means` says what it does. */
  interface Offer { id: string; label: string; means: string | null }

  interface Question {
    id: string;
    question: string;
    line: string;
    askedAt: string;
    offered: Offer[];
    takesText: boolean;
    isWhole: boolean;
    isPermission: boolean;
    multiple?: boolean;
    default?: string | null;
    described?: string | null;
    tool?: string | null;
    arguments?: unknown;
    askedBy?: string | null;
    askedByType?: string | null;
  }

  /** A question with what came of it, as `show` has it: from its file, so without the answers that may be given. */
  interface AskedQuestion extends Omit<Question, 'offered' | 'takesText' | 'isWhole' | 'isPermission' | 'line'> {
    answer?: string | { answer?: string | null; by?: string; at?: string; reason?: string; expired?: boolean } | null;
    by?: string;
    at?: string;
    answeredAt?: string;
    reason?: string;
    expired?: boolean;
  }

  interface Used { input?: number; output?: number; cached?: number; costUsd?: number | null; tokens?: number | null }
  interface Progress { at?: string; percent?: number | null; text?: string | null }
  interface Placement { runner: string; node?: string; state?: string; words?: string; reason?: string; problem?: string }
  interface Survivor { pid: number; command?: string }

  /** What signs and words are made of: each kind of row of a worker has it. */
  interface Standing {
    status?: Status;
    reason?: string | null;
    exitCode?: number | null;
    signal?: string | null;
    message?: string | null;
    lastLine?: string | null;
    idle?: object | null;
    paused?: boolean;
    health?: string | null;
  }

  /** A row of the fleet: of what `list` has only what is not as usual. */
  interface Worker extends Standing {
    taskId: string;
    agentInstance: string;
    /** Of a further try: whose work it does. */
    work?: string;
    status: Status;
    need?: Need;
    needSince?: string;
    questions?: Question[];
    agent?: string;
    driver?: string | null;
    attempt?: number;
    stalled?: boolean;
    parked?: boolean;
    awaitsAccount?: { account: string; until: string; window: string } | null;
    usage?: Used | null;
    parent?: string | null;
    queuedAt?: string | null;
    startedAt?: string | null;
    endedAt?: string | null;
    durationSeconds?: number | null;
    progress?: Progress | null;
    survivors?: Survivor[];
    awaitsChildren?: boolean;
    uncollected?: number;
    command?: string;
    after?: string[];
    askedBelow?: number;
    placement?: Placement;
    unreadable?: string;
    observed?: boolean;
    changedFiles?: number | null;
    calls?: number;
    lastWords?: string;
  }

  interface Totals {
    workers?: number;
    live?: number;
    asking?: number;
    failed?: number;
    tokens?: number;
    lacksTokens?: boolean;
    costUsd?: number;
    lacksCost?: boolean;
    began?: string | null;
    ended?: string | null;
  }

  interface Task {
    taskId: string;
    title?: string;
    state: string;
    status: string;
    own?: boolean;
    held?: { taskId: string; by?: string | null } | null;
    parent?: string | null;
    parentInstance?: string | null;
    totals?: Totals;
  }

  /** What is new in the fleet, by key; null of what went. `whole`: nothing else is there. */
  interface FleetMessage {
    version?: string;
    whole?: boolean;
    isPartial?: boolean;
    tasks?: Record<string, Task | null>;
    workers?: Record<string, Worker | null>;
  }

  interface About { version: string; root: string; readOnly: boolean }

  interface Event {
    seq: number;
    taskId: string;
    agentInstance?: string;
    type?: string;
    ts?: string;
    by?: string;
    problem?: string;
    payload?: Record<string, unknown> & { id?: string; answer?: unknown; by?: string };
  }
  interface EventsPage { events: Event[]; more: boolean; earlier: boolean }

  /** A row of an output: parts, each a text, and behind it its style if it has one. */
  interface OutputRow { at: number; spans: string[][]; continued?: boolean }
  interface LogStream { stream: string; size: number; writtenAt: string | null }
  /** A part of an output, in bytes of its file: all its rows from `begin` to `end`. */
  interface LogPage {
    stream: string;
    rows: OutputRow[];
    begin: number;
    end: number;
    size: number;
    ended: boolean;
    streams: LogStream[];
  }
  interface LogHit { at: number; line: number }
  interface LogHits { hits: LogHit[]; looked: number; line: number; size: number; more: boolean }

  type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

  /** A row of an activity; `cutAt`: what is in the file as a whole, a field, or a field and what is in it. */
  interface ActivityRow {
    offset: number;
    type: string;
    id?: string | number;
    at?: string;
    phase?: string;
    label?: string;
    problem?: string;
    cutAt?: string[][];
    parent?: string | number | null;
    status?: string;
    agentType?: string;
    name?: string;
    text?: string;
    /** The text as a terminal shows it, where that is more than text. */
    shown?: OutputRow[];
    detail?: any;
    percent?: number;
  }
  interface ActivityPage { rows: ActivityRow[]; begin: number; end: number; size: number; ended: boolean }

  /** A line of the tree below a worker. */
  interface Item {
    id: string | number;
    type: string;
    parent?: string | number | null;
    depth?: number;
    status?: string;
    name?: string;
    text?: string;
    /** Of what an agent says: its beginning in words, not as Markdown. */
    line?: string;
    agentType?: string;
    detail?: any;
    percent?: number | null;
    calls?: number;
    tokens?: Used;
    startedAt?: string;
    endedAt?: string;
    lastAt?: string;
    orphan?: boolean;
    earlier?: number;
  }

  interface ChangedFile { path: string; status: string; added?: number | null; removed?: number | null }
  interface Diff {
    since: string | null;
    until?: string;
    origin?: string;
    files: ChangedFile[];
    fileCount?: number;
    leftOut?: Array<{ path: string; why: string }>;
    cut?: boolean;
    diff: string;
  }

  interface Worktree {
    path?: string;
    branch?: string;
    base?: string;
    removed?: boolean;
    next?: string;
    overlaps?: Array<{ instance: string; files?: string[] }>;
  }
  /** A sentence of `why`; about the failure of another worker with that one's last lines. */
  interface Statement {
    text: string;
    evidence?: Array<{ kind: string; where: string; says?: unknown; at?: string }>;
    taskId?: string;
    agentInstance?: string;
    lastLines?: LastLines;
  }
  /** The last lines of a failed worker. */
  interface LastLines { stderr?: string[]; stdout?: string[] }
  interface Result extends Standing {
    lastLines?: LastLines;
    source: string;
    summary?: string | null;
    text?: string | null;
    truncated?: boolean;
    size?: number;
    sha256?: string | null;
    path?: string;
    files?: ResultFile[];
    worktree?: Worktree | null;
  }
  /** A next step as a value: what is done to which workers of a task; to all of them where none is named. */
  interface Step { verb: string; taskId: string; workers: string[]; question?: string; root?: string }
  interface WayOut { text: string; command?: string | null; step?: Step | null }
  interface Why {
    status: string;
    state?: string;
    since?: string | null;
    judged?: boolean;
    statements?: Statement[];
    lastLines?: LastLines;
    waysOut?: WayOut[];
  }
  /** `show`: a row, and everything that is known beside it. */
  interface Shown extends Omit<Worker, 'questions'> {
    folder?: string;
    spec?: { order?: { prompt?: string } };
    worktree?: Worktree | null;
    result?: { touchedFiles?: string[] } | null;
    questions?: AskedQuestion[];
    furtherRuns?: { retry: boolean; resume: boolean } | null;
  }

  interface Account {
    account: string;
    windows?: Array<{ window: string; usedPercent?: number | null; resetsAt?: string | null; isRejected?: boolean }>;
    held?: { until: string } | null;
  }
  interface UsedBy extends Standing, Used { taskId: string; agentInstance: string; agent: string; wallSeconds?: number }
  interface Usage {
    total?: Used & { workers?: number; wallSeconds?: number; atLeast?: string[] };
    limits?: Record<string, number | null>;
    left?: Record<string, number | null>;
    reservedUsd?: number;
    accounts?: Account[];
    breakers?: Array<{ agent: string; open: boolean; failures: number; reason?: string }>;
    workers?: UsedBy[];
    models?: Array<Used & { model: string | null; workers: number }>;
  }

  type Shade = 'queued' | 'running' | 'blocked' | 'parked';
  interface Piece { shade: Shade; from: string; to: string; attempt: number }
  interface TimelineRow extends Standing {
    taskId: string;
    agentInstance: string;
    depth: number;
    from: string;
    to: string;
    open?: boolean;
    startedAt?: string | null;
    after?: Array<{ taskId: string; agentInstance: string }>;
    command?: string;
    pieces?: Piece[];
    tokens?: number | null;
    costUsd?: number | null;
    critical?: boolean;
  }
  interface Timeline {
    from: string;
    to: string;
    open?: boolean;
    total?: Used & { atLeast?: string[] };
    criticalPath?: Array<{ taskId: string; agentInstance: string; from: string; to: string; because: string }>;
    workers?: TimelineRow[];
  }

  interface Hit {
    taskId: string;
    agentInstance: string | null;
    source: string;
    at?: string;
    excerpt?: string;
    begin?: number;
    end?: number;
    more?: number;
    /** Where it is in its file, in bytes. */
    offset?: number | null;
  }
  interface Agent { name: string; description?: string; source?: string; usable: boolean; installed?: boolean; driver?: string | null }
  /** What a start may ask of a driver: options -> the values that are known. */
  interface Driver { driver: string; installed: boolean; tested: string | null; takes: Record<string, string[] | undefined> }

  /** What a command tells of each worker that it was about. */
  interface Done {
    agentInstance?: string;
    taskId?: string;
    status?: string;
    message?: string;
    note?: string;
    cancelled?: boolean;
    survivors?: Survivor[];
    withIt?: Array<{ survivors?: Survivor[] }>;
    branch?: string;
    branchDeleted?: boolean;
    warning?: string;
    queued?: number;
    answer?: string;
    /** Its key has started it before. */
    reused?: boolean;
  }
  /** What became of one of the workers that were acted on by one request. */
  interface Outcome {
    taskId: string;
    agentInstance: string;
    done: boolean;
    detail: string | null;
    hint: string | null;
    next?: NextStep;
    steps?: NextStep[];
    status?: string;
    startedAs?: string;
    survivors?: Survivor[];
    conflict?: boolean;
  }
  interface Outcomes { workers: Outcome[]; below: Outcome[] }
  /** A next step, for which the page has words of its own. */
  interface ResultFile { path: string; size?: number; now?: string }
  interface NextStep { step: string; of: string; task: string; words: string }
  interface Problem {
    detail?: string; title?: string; hint?: string | null; next?: NextStep | null; steps?: NextStep[]; name?: string; done?: DoneBefore;
  }
  interface DoneBefore { taskId: string; agentInstance: string | null }
}
