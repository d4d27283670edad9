package protocol

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
)

// The JSON objects that the command line prints. Keys are stable: the first
// nine of [StepOutput] are the original's. New keys may be added.

// Status is where a thread stands.
type Status string

// The statuses. Only completed, failed and cancelled are stored; the others are
// derived from the head and the run in flight.
const (
	StatusIdle      Status = "idle"      // waits for the next step
	StatusRunning   Status = "running"   // a step is in flight
	StatusSuspended Status = "suspended" // waits for a person
	StatusError     Status = "error"     // the last try of the next step failed; stepping retries
	StatusCompleted Status = "completed" // reached $END
	StatusFailed    Status = "failed"    // reached $FAIL
	StatusCancelled Status = "cancelled" // ended by a person
	StatusCorrupt   Status = "corrupt"   // a node that it needs is missing or damaged
	// StatusWaitingForChildren: its children are at work or due.
	StatusWaitingForChildren Status = "waiting-for-children"
	// StatusRateLimited: its provider grants no more before a time that is known.
	StatusRateLimited Status = "rate-limited"
	// StatusResumed appears only in history.jsonl: the thread is active again.
	StatusResumed Status = "resumed"
)

// AtEnd reports whether a thread has reached $END or $FAIL.
func (s Status) AtEnd() bool { return s == StatusCompleted || s == StatusFailed }

// Statuses are those that a thread can have.
func Statuses() []Status {
	return []Status{StatusIdle, StatusRunning, StatusWaitingForChildren, StatusRateLimited, StatusSuspended, StatusError,
		StatusCompleted, StatusFailed, StatusCancelled, StatusCorrupt}
}

// NullString is a text of which the empty one is null in JSON.
type NullString string

// MarshalJSON implements json.Marshaler.
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// NullHash is a hash of which the empty one is null in JSON.
type NullHash Hash

// MarshalJSON implements json.Marshaler.
func (h NullHash) MarshalJSON() ([]byte, error) { return NullString(h).MarshalJSON() }

// StepOutput is where a thread stands after a command.
type StepOutput struct {
	Workflow       Hash       `json:"workflow"`
	Thread         string     `json:"thread"`
	Head           Hash       `json:"head"`
	Status         Status     `json:"status"`
	CurrentRole    NullString `json:"currentRole"`   // next, or running
	SuspendedRole  NullString `json:"suspendedRole"` // the role that resume runs
	SuspendMessage NullString `json:"suspendMessage"`
	Done           bool       `json:"done"`
	Background     *bool      `json:"background"`
	Error          *StepError `json:"error"`
	Role           NullString `json:"role"`     // the role that this command ran
	StepHash       NullHash   `json:"stepHash"` // the node that this command added
	WorkflowName   string     `json:"workflowName,omitempty"`
	Adopted        bool       `json:"adopted,omitempty"` // finished work of an interrupted step
	Pending        bool       `json:"pending,omitempty"` // such work waits: the next step adopts it
	Agent          string     `json:"agent,omitempty"`
	Usage          *Usage     `json:"usage,omitempty"`
	Question       *Question  `json:"question,omitempty"` // that a person is asked; none where a limit stopped the thread
	Message        string     `json:"message,omitempty"`  // closing words: the prompt of the edge to $END
	Output         any        `json:"output,omitempty"`   // the data of the thread's last step

	Files *FileChanges `json:"files,omitempty"` // by the step that this command made, or by undo and redo
	// Children play the role that is next, if threads of their own do; uwf thread show names
	// those of the newest join, if none does.
	Children         []ChildOutput `json:"children,omitempty"`
	Parallel         int           `json:"parallel,omitempty"`         // of them at once, as the role says; 0: any number
	RateLimitedUntil *int64        `json:"rateLimitedUntil,omitempty"` // ms; its provider grants no more before
}

// RunOutput answers every command that works on a thread, or waits for that: where
// the thread stands, the steps that this command made, and what all of its steps
// have cost.
type RunOutput struct {
	StepOutput
	Steps  []StepOutput `json:"steps"`
	Totals *Totals      `json:"totals,omitempty"` // absent: a step cannot be read
}

// Action is something that can be done with a thread now.
type Action struct {
	Verb string
	// Form is a JSON Schema of what goes with it: the answer, or a text; nil: nothing.
	Form any
	// Command are the arguments of uwf for it, without the program's name. What a person fills in is
	// between angle brackets, or is "…".
	Command []string
}

// Verbs of actions.
const (
	VerbAnswer     = "answer"      // give the data that a role asks a person for
	VerbResume     = "resume"      // answer in words, or say what else to do
	VerbContinue   = "continue"    // run to the end, or until a person is needed
	VerbRaiseLimit = "raise-limit" // grant what the run may cost again, and continue
	VerbRetry      = "retry"       // make the last step again, with words or without
	VerbUndo       = "undo"
	VerbRedo       = "redo"
	VerbStop       = "stop"
	VerbKill       = "kill"
	VerbFork       = "fork"
	VerbMessage    = "message"
	VerbWait       = "wait"
	VerbDiagnose   = "diagnose"
	VerbRead       = "read"
)

// Question is what a suspended thread asks a person. Schema is the form of the answer,
// a JSON Schema; without one the answer is a text.
type Question struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Schema any    `json:"schema,omitempty"`
}

// ChildOutput is where a child of a thread stands.
type ChildOutput struct {
	Key    string `json:"key"`
	Thread string `json:"thread"`
	Status Status `json:"status"`
	Label  string `json:"label,omitempty"` // of a child for an item: which one, in a few words
}

// ChildAgain answers thread retry of a child: where the child stands that is to be played again.
type ChildAgain struct {
	ChildOutput
	Parent string `json:"parent"`
	Hint   string `json:"hint"` // what to type next
}

// StepError is the failure of the last try of the next step.
type StepError struct {
	StepHash NullHash `json:"stepHash"` // a step that was rejected
	Message  string   `json:"message"`
	Code     Code     `json:"code,omitempty"`
	Hint     string   `json:"hint,omitempty"` // what to type next, a line each
	// Reasons are those of the error that the hint does not answer yet.
	Reasons []Reason `json:"-"`
}

// Advise adds to the hint what a front end knows to do about the reasons.
func (e *StepError) Advise(hints func(...Reason) []string) {
	if e != nil && hints != nil {
		e.Hint = strings.Trim(e.Hint+"\n"+strings.Join(hints(e.Reasons...), "\n"), "\n")
		e.Reasons = nil
	}
}

// ThreadShow is a thread's state, with its steps if asked for.
type ThreadShow struct {
	StepOutput
	StartedAt  *int64      `json:"startedAt"` // ms, from the thread's id
	Hint       NullString  `json:"hint"`
	Title      string      `json:"title,omitempty"`
	ForkedFrom *ForkedFrom `json:"forkedFrom,omitempty"`
	// Workspace is where its agents work, if its files are kept, and Changes what its
	// steps, the newest 500 at most, have made of them.
	Workspace *ThreadWorkspace `json:"workspace,omitempty"`
	Changes   *FileTotals      `json:"changes,omitempty"`
	Left      []string         `json:"left,omitempty"` // paths that its last step does not keep
	Artifacts *Artifacts       `json:"artifacts,omitempty"`
	// Agents are those that an earlier --agent chose for the next steps, by role; "*": all others.
	Agents map[string]string `json:"agents,omitempty"`
	Totals *Totals           `json:"totals"`          // null: a step that has not been summed up yet cannot be read
	Steps  []any             `json:"steps,omitempty"` // StartEntry, then StepEntry
}

// Artifacts is what the roles of a run have left in the directory of [EnvArtifacts].
type Artifacts struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	More  bool   `json:"more,omitempty"` // than was counted
}

// ThreadWorkspace is where the agents of a thread work.
type ThreadWorkspace struct {
	Mode   string `json:"mode"` // in-place or worktree
	Root   string `json:"root"`
	Branch string `json:"branch,omitempty"`
}

// Totals is what the steps of a thread cost together. What some steps do not tell
// is missing in the sums, which then are lower bounds. A bound of $0 is none: the cost
// is unknown then.
type Totals struct {
	Steps             int    `json:"steps"`
	DurationMs        int64  `json:"durationMs"` // of the steps, not of the pauses between them
	Usage             *Usage `json:"usage"`      // null: unknown
	StepsWithoutUsage int    `json:"stepsWithoutUsage"`
	StepsWithoutCost  int    `json:"stepsWithoutCost"`
	// FailedTries are those since the last step. The sums have their cost; if some of it is unknown, they
	// count as one more step without it.
	FailedTries int `json:"failedTries,omitempty"`
}

// Add adds a step, with the tries that failed before it.
func (t *Totals) Add(s Step) {
	t.Steps++
	t.DurationMs += s.CompletedAtMs - s.StartedAtMs
	counted, priced := s.Usage.Counted(), s.Usage.IsPriced()
	t.Spend(s.Usage)
	triesCounted, triesPriced := t.addTries(s.Tries)
	counted, priced = counted && triesCounted, priced && triesPriced
	if len(s.Children) > 0 { // their sum is the step's
		counted, priced = true, true
	}
	for _, c := range s.Children {
		if c.Usage != nil {
			t.DurationMs += c.Usage.DurationMs
		}
		counted, priced = counted && c.Usage.Counted(), priced && c.Usage.IsPriced()
	}
	t.without(counted, priced)
}

// AddPending adds tries that failed since the last step: what they have cost is known before the step is made.
func (t *Totals) AddPending(tries []Try) {
	t.FailedTries = len(tries)
	t.without(t.addTries(tries))
}

func (t *Totals) addTries(tries []Try) (counted, priced bool) {
	counted, priced = true, true
	for _, try := range tries {
		if try.Usage != nil {
			t.DurationMs += try.Usage.DurationMs
		}
		counted, priced = counted && try.Usage.Counted(), priced && try.Usage.IsPriced()
		t.Spend(try.Usage)
	}
	return counted, priced
}

// without counts what is not known of a step.
func (t *Totals) without(counted, priced bool) {
	if !counted {
		t.StepsWithoutUsage++
	}
	if !priced {
		t.StepsWithoutCost++
	}
	if t.StepsWithoutCost > 0 && t.Usage != nil && t.Usage.CostUSD != nil && *t.Usage.CostUSD == 0 {
		t.Usage.CostUSD = nil // that commands and people cost nothing says nothing of the others
	}
}

// Spend adds what a run has cost, and counts nothing else; nil: nothing is known.
func (t *Totals) Spend(u *Usage) {
	if u == nil {
		return
	}
	sum := *u
	if t.Usage != nil {
		sum = t.Usage.Add(sum)
	}
	t.Usage = &sum
}

// ThreadItem is one line of a list of threads.
type ThreadItem struct {
	Thread           string      `json:"thread"`
	Workflow         Hash        `json:"workflow"`
	WorkflowName     NullString  `json:"workflowName"`
	Head             Hash        `json:"head"`
	Status           Status      `json:"status"`
	StatusDisplay    string      `json:"statusDisplay"`
	CurrentRole      NullString  `json:"currentRole"`
	SuspendedRole    NullString  `json:"suspendedRole,omitempty"`    // the role that resume runs
	StartedAt        *int64      `json:"startedAt"`                  // ms, from the thread's id
	CompletedAt      *int64      `json:"completedAt"`                // ms
	RateLimitedUntil *int64      `json:"rateLimitedUntil,omitempty"` // ms
	Error            string      `json:"error,omitempty"`
	Imported         bool        `json:"imported,omitempty"`   // from elsewhere, or perhaps so
	Title            string      `json:"title,omitempty"`      // given by a person, else the task's first line
	ForkedFrom       *ForkedFrom `json:"forkedFrom,omitempty"` // of a fork
	Totals           *Totals     `json:"totals,omitempty"`     // as far as they have been summed up
	WorkedOnBy       string      `json:"workedOnBy,omitempty"` // who has the lease of a thread at a remote
	// Run is the process at work, where only running threads are listed.
	Run *RunningThread `json:"run,omitempty"`
}

// ThreadSteps is the history of a thread: a [StartEntry], then a [StepEntry]
// for each step, oldest first.
type ThreadSteps struct {
	Thread   string `json:"thread"`
	Workflow Hash   `json:"workflow"`
	Steps    []any  `json:"steps"`
}

// StartEntry is the first entry of a history.
type StartEntry struct {
	Hash      Hash           `json:"hash"`
	Workflow  Hash           `json:"workflow"`
	Prompt    string         `json:"prompt"`
	Timestamp int64          `json:"timestamp"`
	Inputs    map[string]any `json:"inputs,omitempty"`
}

// StepEntry is one step of a history, its output expanded.
type StepEntry struct {
	Hash       Hash   `json:"hash"`
	Role       string `json:"role"`
	Output     any    `json:"output"`
	Detail     Hash   `json:"detail"`
	Agent      string `json:"agent"`
	Timestamp  int64  `json:"timestamp"`
	DurationMs int64  `json:"durationMs"`
	Usage      *Usage `json:"usage"`
	SessionID  string `json:"sessionId,omitempty"`
	Index      int    `json:"index"`
	// Changes is what it did to the files, if they are kept and on this machine.
	Changes *FileTotals `json:"changes,omitempty"`
}

// ThreadStarted answers thread start.
type ThreadStarted struct {
	Workflow Hash   `json:"workflow"`
	Thread   string `json:"thread"`
}

// ThreadTitled answers thread title.
type ThreadTitled struct {
	Thread string `json:"thread"`
	Title  string `json:"title"`
}

// ThreadForked answers thread fork.
type ThreadForked struct {
	Thread     string     `json:"thread"`
	ForkedFrom ForkedFrom `json:"forkedFrom"`
}

// ForkedFrom names the node that a fork begins at.
type ForkedFrom struct {
	Thread string `json:"thread,omitempty"` // in which it was found; "": not known
	Step   Hash   `json:"step"`
}

// ThreadKilled answers thread kill, under the seeds' key and the original's.
type ThreadKilled struct {
	Thread    string `json:"thread"`
	Archived  bool   `json:"archived"`
	Cancelled bool   `json:"cancelled"`
}

// ThreadBisected answers thread bisect.
type ThreadBisected struct {
	First  BisectedStep   `json:"first"`            // after which the command fails
	Unsure []BisectedStep `json:"unsure,omitempty"` // before it, that could not be tried: one of them may be the first
	Tried  []BisectedStep `json:"tried"`
}

// BisectedStep is a step of it.
type BisectedStep struct {
	Step   Hash   `json:"step"`
	Number int    `json:"number"` // 0: the start
	Role   string `json:"role,omitempty"`
	Result string `json:"result,omitempty"` // good, bad or skipped; "": not tried
}

// Results of a try.
const (
	BisectGood    = "good"
	BisectBad     = "bad"
	BisectSkipped = "skipped"
)

// ThreadRemoved answers thread rm.
type ThreadRemoved struct {
	Thread  string `json:"thread"`
	Head    Hash   `json:"head"` // uwf thread fork begins there, until the next collection
	Removed bool   `json:"removed"`
}

// WorkflowRemoved answers workflow rm.
type WorkflowRemoved struct {
	Name    string `json:"name"`
	Hash    Hash   `json:"hash"`
	Removed bool   `json:"removed"`
}

// ThreadText answers thread read, if JSON or YAML was asked for.
type ThreadText struct {
	Thread   string `json:"thread"`
	Markdown string `json:"markdown"`
}

// ThreadMessage answers thread message.
type ThreadMessage struct {
	Thread string `json:"thread"`
	Queued bool   `json:"queued"` // it is kept for the agent
}

// ThreadStopped answers thread stop.
type ThreadStopped struct {
	Thread  string `json:"thread"`
	Stopped bool   `json:"stopped"`
}

// RunningThread is a thread that something works on.
type RunningThread struct {
	Thread    string `json:"thread"`
	Path      string `json:"path,omitempty"`  // of a child, as on the command line: <thread>/<key>
	Label     string `json:"label,omitempty"` // see [ChildOutput]
	Workflow  Hash   `json:"workflow"`
	Pid       int    `json:"pid"`       // of the uwf that makes the steps; 0: it was killed, its agent lives on
	StartedAt int64  `json:"startedAt"` // ms, of the step
	Role      string `json:"role"`
	Agent     string `json:"agent"` // as the user named it
	AgentPid  int    `json:"agentPid"`
}

// WorkflowPut answers workflow put.
type WorkflowPut struct {
	Name string `json:"name"`
	Hash Hash   `json:"hash"`
}

// WorkflowItem is one line of a list of workflows.
type WorkflowItem struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"`   // or "(local)"
	Origin string `json:"origin"` // local or global
	Path   string `json:"path,omitempty"`
}

// WorkflowShow is a stored workflow.
type WorkflowShow struct {
	Hash      Hash       `json:"hash"`
	Name      NullString `json:"name"`
	Type      Hash       `json:"type"`
	Payload   any        `json:"payload"`
	Timestamp int64      `json:"timestamp"`
}

// Validation answers workflow validate.
type Validation struct {
	Valid    bool      `json:"valid"`
	Errors   []string  `json:"errors"` // file:line:column: message
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one thing that is wrong in a file that a person wrote.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: unknown
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Message string `json:"message"`
	Excerpt string `json:"excerpt,omitempty"` // the offending line
	Remedy  string `json:"remedy,omitempty"`  // what would be right
}

// RoleTotals is what a role has cost.
type RoleTotals struct {
	Role string `json:"role"`
	Totals
}

// ThreadDiagnosis answers thread diagnose.
type ThreadDiagnosis struct {
	Thread   string          `json:"thread"`
	Status   Status          `json:"status"`
	Head     Hash            `json:"head"`
	Totals   *Totals         `json:"totals"`
	Run      *LastTry        `json:"run"` // the last try of a step; null: nothing is known
	Findings []ThreadFinding `json:"findings"`
}

// ThreadFinding is one thing that is worth knowing, with what to do about it.
type ThreadFinding struct {
	Level   string `json:"level"` // error: the thread cannot go on; warning; note
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // a command, or what to do
}

// LastTry is the last try of a step, in flight or not.
type LastTry struct {
	Role      string   `json:"role"`
	Agent     string   `json:"agent"`
	Command   []string `json:"command"`
	Status    string   `json:"status"`
	Alive     bool     `json:"alive"`
	StartedAt int64    `json:"startedAt"`
	HeardAt   *int64   `json:"heardAt"` // ms; null: the agent has written nothing
	Error     string   `json:"error,omitempty"`
	Stderr    string   `json:"stderr"`
	WorkerLog string   `json:"workerLog,omitempty"`
	Dir       string   `json:"dir"`
}

// InboxItem is a thread that cannot go on without a person.
type InboxItem struct {
	Thread   string    `json:"thread"`
	Title    string    `json:"title,omitempty"`
	Workflow string    `json:"workflow"` // its name
	Status   Status    `json:"status"`   // suspended, error or corrupt
	Question *Question `json:"question,omitempty"`
	Reason   string    `json:"reason,omitempty"` // why it stands still, where nothing is asked
	Since    *int64    `json:"since"`            // ms
	Command  string    `json:"command"`          // what to type next
	Totals   *Totals   `json:"totals,omitempty"` // as far as they have been summed up
}

// Notice reports that a thread has come to rest: the stdin of notify.command, and the body
// of what is posted to notify.webhook.
type Notice struct {
	ID    string `json:"id"`    // the same when it is sent once more
	Event string `json:"event"` // waiting, error, failed, completed or limit
	At    int64  `json:"at"`    // ms
	Text  string `json:"text"`  // what has happened, in a line
	InboxItem
	Link          string `json:"link,omitempty"`          // answers the question, once
	LinkExpiresAt *int64 `json:"linkExpiresAt,omitempty"` // ms
}

// FileChanges are paths, relative to the root of the workspace.
type FileChanges struct {
	Changed []string `json:"changed,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Left    []string `json:"left,omitempty"` // that the step does not keep
}

// FileTotals says how much changed between two states of the files.
type FileTotals struct {
	Files   int `json:"files"` // added, changed and removed
	Added   int `json:"added"` // lines; of what is no text none
	Removed int `json:"removed"`
}

// ThreadApplied answers thread apply. Branch and commit are empty if a thread that works in
// the user's own files has gone on elsewhere: they have become those of its last step.
type ThreadApplied struct {
	Thread string `json:"thread"`
	Branch string `json:"branch"` // that has the result now
	Commit string `json:"commit"` // at which it is
	// Merged: the branch had gone on, and the commit is a merge. Already: the branch had
	// the result before.
	Merged  bool         `json:"merged"`
	Already bool         `json:"already"`
	Root    string       `json:"root,omitempty"`  // where the thread works, if that is a directory of the user's own
	Files   *FileChanges `json:"files,omitempty"` // that were written in the work tree
	Left    []string     `json:"left,omitempty"`  // paths that the result does not have: only the thread's worktree does
}

// FilesRedacted answers thread redact --files.
type FilesRedacted struct {
	Thread  string   `json:"thread"`
	Path    string   `json:"path"`
	States  int      `json:"states"`         // of the files that had it
	Also    []string `json:"also,omitempty"` // other threads of which it was kept
	Remains []string `json:"remains"`        // where content still is
}

// Worktree is one of uwf thread worktrees.
type Worktree struct {
	Path      string `json:"path"`
	Thread    string `json:"thread,omitempty"` // "": no thread has it
	Status    Status `json:"status,omitempty"` // of the thread
	Branch    string `json:"branch,omitempty"` // "": it is on none
	Base      string `json:"base,omitempty"`   // the commit that it began with
	Repo      string `json:"repo,omitempty"`   // the git directory
	CreatedAt int64  `json:"createdAt,omitempty"`
	Bytes     int64  `json:"bytes"`
	Gone      bool   `json:"gone"`            // there is none at the path any more
	Stays     string `json:"stays,omitempty"` // why it was not removed
}

// AnswerField holds the answer of a role that names no data.
const AnswerField = "answer"

// AnswerSchema is the schema of a role that names none: its answer is a text, as it
// is. An edge's prompt says {{{answer}}}, and the only edge is "_".
func AnswerSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{AnswerField},
		"properties": map[string]any{AnswerField: map[string]any{"type": "string"}},
	}
}

// IsAnswerSchema reports whether a schema is that of a role that names none,
// whatever its title: the store gives each role's schema one.
func IsAnswerSchema(schema any) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	m = maps.Clone(m)
	delete(m, "title")
	return reflect.DeepEqual(m, AnswerSchema())
}

// Stats answers stats: what steps have cost, in groups.
type Stats struct {
	Since   *int64      `json:"since"` // ms; null: all steps
	By      []string    `json:"by"`
	Rows    []StatsRow  `json:"rows"`
	Totals  Totals      `json:"totals"`
	Threads int         `json:"threads"` // that the steps are of
	Unread  []StatsHole `json:"unread"`  // threads whose steps could not all be read
}

// StatsRow is one group: a value for each name in By. An unknown model is "".
type StatsRow struct {
	Of map[string]string `json:"of"`
	Totals
}

// StatsHole is a thread that is missing in the sums, or part of it.
type StatsHole struct {
	Thread string `json:"thread"`
	Error  string `json:"error"`
}

// Merge adds what other steps cost together.
func (t *Totals) Merge(o Totals) {
	t.Steps += o.Steps
	t.DurationMs += o.DurationMs
	t.Spend(o.Usage)
	t.StepsWithoutUsage += o.StepsWithoutUsage
	t.StepsWithoutCost += o.StepsWithoutCost
}

// AgentCheck is what an agent that drives an external program says of it, as one
// JSON line, when it is started with [FlagCheck] alone.
type AgentCheck struct {
	Program  string         `json:"program"` // absolute path; "" if it was not found
	Version  string         `json:"version"` // "" if unknown
	Problems []AgentProblem `json:"problems"`
}

// AgentProblem is something that is wrong, with what to do.
type AgentProblem struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// ModulePath begins the import path of all that is in this project; programs
// are in ModulePath/cmd.
const ModulePath = "github.com/united-workforce/uwf"

// FlagCheck asks an agent about the program that it drives; see [AgentCheck].
const FlagCheck = "--check"

// Severity says what a finding means.
type Severity string

// The severities.
const (
	SeverityOK      Severity = "ok"
	SeverityNote    Severity = "note"    // worth knowing; everything works
	SeverityWarning Severity = "warning" // something does not work, or will not for long
	SeverityProblem Severity = "problem" // no step can be made
)

// Finding is one thing that the doctor has looked at.
type Finding struct {
	Area     string   `json:"area"` // home, store, threads, config, agents, models, disk, confinement
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // the remedy: a command, or what to change
	// ForAgents: only roles that an agent plays are affected.
	ForAgents bool `json:"forAgents,omitempty"`
}

// Diagnosis is the output of `uwf doctor`.
type Diagnosis struct {
	Healthy  bool      `json:"healthy"` // no finding is a problem
	Findings []Finding `json:"findings"`
}

// SetupOutput is the output of `uwf setup`.
type SetupOutput struct {
	ConfigPath   string           `json:"configPath"`
	Provider     string           `json:"provider,omitempty"`
	Model        string           `json:"model,omitempty"`
	DefaultAgent string           `json:"defaultAgent,omitempty"`
	Validation   *SetupValidation `json:"validation,omitempty"` // nil: the model was not tried
	May          string           `json:"may,omitempty"`        // what the agent may do
	Probe        *SetupProbe      `json:"probe,omitempty"`      // nil: no role was played
	Replaced     *SetupReplaced   `json:"replaced,omitempty"`   // nil: nothing that was in use
	Skills       []string         `json:"skills,omitempty"`     // files written by --skill
}

// SetupReplaced is the model that was in use before `uwf setup`.
type SetupReplaced struct {
	Alias    string `json:"alias"` // in models, where it still is
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"baseUrl"` // the provider's address, before
}

// SetupProbe is a run of one role that answers one question.
type SetupProbe struct {
	OK     bool     `json:"ok"`
	Answer string   `json:"answer,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hints  []string `json:"hints,omitempty"` // what to do about the error
}

// SetupValidation says whether the model answers.
type SetupValidation struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

//go:embed editor/*.json
var editorSchemas embed.FS

// EditorFile is a file that a person writes.
type EditorFile string

// The files with a schema for editors.
const (
	EditWorkflow EditorFile = "workflow" // a workflow file, in any of its forms
	EditConfig   EditorFile = "config"   // <home>/config.yaml
)

// EditorSchema is a JSON Schema (draft-07) of a file, with which an editor
// completes it and marks mistakes. It refuses nothing that uwf accepts; what it
// cannot know, such as where an edge may lead, only uwf tells. It panics for a
// file that is none of the constants: such a value is a programming error.
func EditorSchema(f EditorFile) []byte {
	b, err := editorSchemas.ReadFile("editor/" + string(f) + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for file %q", f))
	}
	return b
}

// MaxTitle bounds the title of a thread, in characters.
const MaxTitle = 200

// TitleOf is the title of a thread that nobody has given one: the first line of its
// task that says anything.
func TitleOf(task string) string {
	for line := range strings.Lines(task) {
		if line = strings.Trim(strings.TrimSpace(line), "# "); line != "" {
			return shortened(line)
		}
	}
	return ""
}

func shortened(line string) string {
	if r := []rune(line); len(r) > MaxTitle {
		return string(r[:MaxTitle-1]) + "…"
	}
	return line
}

// Span is a length of time as people write it: 2h, not 2h0m0s.
func Span(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
