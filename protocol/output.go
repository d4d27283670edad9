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

// The JSON objects that the command line prints. Keys are stable; new ones can be added. The first nine keys
// of [StepOutput] come from the original uwf.

// Status is the status of a thread.
type Status string

// Statuses of threads. Only completed, failed and cancelled are stored; the others are derived from the head
// and the run in flight.
const (
	StatusIdle      Status = "idle"      // waits for the next step
	StatusRunning   Status = "running"   // a step is in flight
	StatusSuspended Status = "suspended" // waits for a person
	StatusError     Status = "error"     // the last try of the next step failed; the next step retries it
	StatusCompleted Status = "completed" // reached $END
	StatusFailed    Status = "failed"    // reached $FAIL
	StatusCancelled Status = "cancelled" // ended by a user
	StatusCorrupt   Status = "corrupt"   // a required node is missing or damaged
	// StatusWaitingForChildren means that its children are running or due.
	StatusWaitingForChildren Status = "waiting-for-children"
	// StatusRateLimited means that it waits for the reset of a provider's rate limit.
	StatusRateLimited Status = "rate-limited"
	// StatusResumed occurs only in history.jsonl, for a thread that is active again.
	StatusResumed Status = "resumed"
)

// AtEnd reports whether a thread has reached $END or $FAIL.
func (s Status) AtEnd() bool { return s == StatusCompleted || s == StatusFailed }

// Ends reports whether a thread can end with s.
func (s Status) Ends() bool { return s.AtEnd() || s == StatusCancelled }

// Statuses lists the statuses that a thread can have.
func Statuses() []Status {
	return []Status{StatusIdle, StatusRunning, StatusWaitingForChildren, StatusRateLimited, StatusSuspended, StatusError,
		StatusCompleted, StatusFailed, StatusCancelled, StatusCorrupt}
}

// NullString is a string that is null in JSON if it is empty.
type NullString string

// MarshalJSON implements json.Marshaler.
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// NullHash is a hash that is null in JSON if it is empty.
type NullHash Hash

// MarshalJSON implements json.Marshaler.
func (h NullHash) MarshalJSON() ([]byte, error) { return NullString(h).MarshalJSON() }

// StepOutput is the state of a thread after a command.
type StepOutput struct {
	Workflow       Hash       `json:"workflow"`
	Thread         string     `json:"thread"`
	Head           Hash       `json:"head"`
	Status         Status     `json:"status"`
	CurrentRole    NullString `json:"currentRole"`   // next or running role
	SuspendedRole  NullString `json:"suspendedRole"` // role that a resume runs
	SuspendMessage NullString `json:"suspendMessage"`
	Done           bool       `json:"done"`
	Background     *bool      `json:"background"`
	Error          *StepError `json:"error"`
	Role           NullString `json:"role"`     // role that this command ran
	StepHash       NullHash   `json:"stepHash"` // node that this command added
	WorkflowName   string     `json:"workflowName,omitempty"`
	Adopted        bool       `json:"adopted,omitempty"` // the step was finished by an interrupted run
	Pending        bool       `json:"pending,omitempty"` // an interrupted run has left a result, which the next step adopts
	Agent          string     `json:"agent,omitempty"`
	Usage          *Usage     `json:"usage,omitempty"`
	Question       *Question  `json:"question,omitempty"` // question for a person; not set if a limit stopped the thread
	Message        string     `json:"message,omitempty"`  // result text: the prompt of the edge to $END
	Output         any        `json:"output,omitempty"`   // data of the thread's last step

	Files *FileChanges `json:"files,omitempty"` // changes by the step that this command made, or by an undo or redo
	// Children are the children of the next role, if it has any. Without them, uwf thread show lists those of
	// the newest join.
	Children         []ChildOutput `json:"children,omitempty"`
	Parallel         int           `json:"parallel,omitempty"`         // maximum number of concurrent children of the role; 0 means unlimited
	RateLimitedUntil *int64        `json:"rateLimitedUntil,omitempty"` // when the provider's limit resets, Unix milliseconds
}

// RunOutput is the output of all commands that work on a thread or wait for it: the thread's state, the steps
// that this command made, and the total cost of the thread.
type RunOutput struct {
	StepOutput
	Steps  []StepOutput `json:"steps"`
	Totals *Totals      `json:"totals,omitempty"` // not set if a step is unreadable
}

// Action is something that a user can do with a thread now.
type Action struct {
	Verb string
	// Form is the JSON Schema of the required answer or text; nil if none is required.
	Form any
	// Command holds the uwf arguments for the action, without the program name. Placeholders are in angle
	// brackets, or are "…".
	Command []string
}

// Verbs of actions.
const (
	VerbAnswer     = "answer"      // give the data that a role asks a person for
	VerbResume     = "resume"      // answer with a text, or give other instructions
	VerbContinue   = "continue"    // run to the end, or until a person is needed
	VerbRaiseLimit = "raise-limit" // double the used-up cost limits, and continue
	VerbRetry      = "retry"       // repeat the last step, with or without a prompt
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

// Question is a suspended thread's question for a person. Schema is the JSON Schema of the answer; without
// it, the answer is a text.
type Question struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Schema any    `json:"schema,omitempty"`
}

// ChildOutput is the state of a child thread.
type ChildOutput struct {
	Key    string `json:"key"`
	Thread string `json:"thread"`
	Status Status `json:"status"`
	Label  string `json:"label,omitempty"` // short description of the child's item, if it has one
}

// ChildAgain is the output of thread retry for a child: the state of the child that will be retried.
type ChildAgain struct {
	ChildOutput
	Parent string `json:"parent"`
	Hint   string `json:"hint"` // suggested command
}

// StepError is the failure of the last try of the next step.
type StepError struct {
	StepHash NullHash `json:"stepHash"` // a rejected step
	Message  string   `json:"message"`
	Code     Code     `json:"code,omitempty"`
	Hint     string   `json:"hint,omitempty"` // suggested commands, one per line
	// Reasons are the error's reasons that the hint doesn't cover yet.
	Reasons []Reason `json:"-"`
}

// Advise adds a front end's hints for the reasons.
func (e *StepError) Advise(hints func(...Reason) []string) {
	if e != nil && hints != nil {
		e.Hint = strings.Trim(e.Hint+"\n"+strings.Join(hints(e.Reasons...), "\n"), "\n")
		e.Reasons = nil
	}
}

// ThreadShow is a thread's state, with its steps if requested.
type ThreadShow struct {
	StepOutput
	StartedAt  *int64      `json:"startedAt"` // Unix milliseconds, from the thread's ID
	Hint       NullString  `json:"hint"`
	Title      string      `json:"title,omitempty"`
	ForkedFrom *ForkedFrom `json:"forkedFrom,omitempty"`
	// Workspace is the workspace of its agents, if its files are snapshotted, and Changes the file changes of
	// its steps, at most the newest 500.
	Workspace *ThreadWorkspace `json:"workspace,omitempty"`
	Changes   *FileTotals      `json:"changes,omitempty"`
	Left      []string         `json:"left,omitempty"` // paths omitted from its last snapshot
	Artifacts *Artifacts       `json:"artifacts,omitempty"`
	// Agents are the agents that an earlier --agent chose for the next steps, by role; "*" means all other
	// roles.
	Agents map[string]string `json:"agents,omitempty"`
	Totals *Totals           `json:"totals"`          // null if the cost of an unreadable step is unknown
	Steps  []any             `json:"steps,omitempty"` // a StartEntry, then StepEntry values
}

// Artifacts counts the files in a run's directory of [EnvArtifacts].
type Artifacts struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	More  bool   `json:"more,omitempty"` // there are more than were counted
}

// ThreadWorkspace is the workspace of a thread's agents.
type ThreadWorkspace struct {
	Mode   string `json:"mode"` // in-place or worktree
	Root   string `json:"root"`
	Branch string `json:"branch,omitempty"`
}

// Totals is the total cost of a thread's steps. Unknown values are missing in the sums, which are lower
// bounds then. A lower bound of $0 is omitted: the cost is unknown then.
type Totals struct {
	Steps             int    `json:"steps"`
	DurationMs        int64  `json:"durationMs"` // of the steps, without the pauses between them
	Usage             *Usage `json:"usage"`      // null if unknown
	StepsWithoutUsage int    `json:"stepsWithoutUsage"`
	StepsWithoutCost  int    `json:"stepsWithoutCost"`
	// FailedTries is the number of failed tries since the last step. Their cost is included in the sums. If
	// some of it is unknown, they count as one more step with unknown cost.
	FailedTries int `json:"failedTries,omitempty"`
}

// Add adds a step, including its failed tries.
func (t *Totals) Add(s Step) {
	t.Steps++
	t.DurationMs += max(0, s.CompletedAtMs-s.StartedAtMs) // the clock can have been set back
	counted, priced := s.Usage.Counted(), s.Usage.IsPriced()
	t.Spend(s.Usage)
	triesCounted, triesPriced := t.addTries(s.Tries)
	counted, priced = counted && triesCounted, priced && triesPriced
	if len(s.Children) > 0 { // the step's usage is their sum
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

// AddPending adds failed tries since the last step, whose cost is known before the step is made.
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

// without counts the unknown values of a step.
func (t *Totals) without(counted, priced bool) {
	if !counted {
		t.StepsWithoutUsage++
	}
	if !priced {
		t.StepsWithoutCost++
	}
	if t.StepsWithoutCost > 0 && t.Usage != nil && t.Usage.CostUSD != nil && *t.Usage.CostUSD == 0 {
		t.Usage.CostUSD = nil // don't report $0 if only commands and persons have a known cost
	}
}

// Spend adds the cost of a run without counting a step; nil means unknown.
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

// ThreadItem is an item of a list of threads.
type ThreadItem struct {
	Thread           string      `json:"thread"`
	Workflow         Hash        `json:"workflow"`
	WorkflowName     NullString  `json:"workflowName"`
	Head             Hash        `json:"head"`
	Status           Status      `json:"status"`
	StatusDisplay    string      `json:"statusDisplay"`
	CurrentRole      NullString  `json:"currentRole"`
	SuspendedRole    NullString  `json:"suspendedRole,omitempty"`    // role that a resume runs
	StartedAt        *int64      `json:"startedAt"`                  // Unix milliseconds, from the thread's ID
	CompletedAt      *int64      `json:"completedAt"`                // Unix milliseconds
	RateLimitedUntil *int64      `json:"rateLimitedUntil,omitempty"` // Unix milliseconds
	Error            string      `json:"error,omitempty"`
	Imported         bool        `json:"imported,omitempty"`   // from another machine, or possibly so
	Title            string      `json:"title,omitempty"`      // set by a user, else the task's first line
	ForkedFrom       *ForkedFrom `json:"forkedFrom,omitempty"` // only set for a fork
	Totals           *Totals     `json:"totals,omitempty"`     // saved sums only
	WorkedOnBy       string      `json:"workedOnBy,omitempty"` // holder of the lease of a thread at a remote
	// Run is the process at work, only set in lists of running threads.
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

// StepEntry is a step of a history, with its output expanded.
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
	// Changes counts its file changes, if there is a snapshot on this machine.
	Changes *FileTotals `json:"changes,omitempty"`
}

// ThreadStarted is the output of thread start.
type ThreadStarted struct {
	Workflow Hash   `json:"workflow"`
	Thread   string `json:"thread"`
}

// ThreadTitled is the output of thread title.
type ThreadTitled struct {
	Thread string `json:"thread"`
	Title  string `json:"title"`
}

// ThreadForked is the output of thread fork.
type ThreadForked struct {
	Thread     string     `json:"thread"`
	ForkedFrom ForkedFrom `json:"forkedFrom"`
}

// ForkedFrom is the node at which a fork starts.
type ForkedFrom struct {
	Thread string `json:"thread,omitempty"` // thread that contains the node; "" if unknown
	Step   Hash   `json:"step"`
}

// ThreadKilled is the output of thread kill, with the keys of both the specification and the original uwf.
type ThreadKilled struct {
	Thread    string `json:"thread"`
	Archived  bool   `json:"archived"`
	Cancelled bool   `json:"cancelled"`
}

// ThreadBisected is the output of thread bisect.
type ThreadBisected struct {
	First  BisectedStep   `json:"first"`            // first step after which the command fails
	Unsure []BisectedStep `json:"unsure,omitempty"` // steps before it that could not be tested, so one of them may be the first
	Tried  []BisectedStep `json:"tried"`
}

// BisectedStep is a step of a bisection.
type BisectedStep struct {
	Step   Hash   `json:"step"`
	Number int    `json:"number"` // 0 means the start
	Role   string `json:"role,omitempty"`
	Result string `json:"result,omitempty"` // good, bad or skipped; "" if not tried
}

// Results of a bisection's try.
const (
	BisectGood    = "good"
	BisectBad     = "bad"
	BisectSkipped = "skipped"
)

// ThreadRemoved is the output of thread rm.
type ThreadRemoved struct {
	Thread  string `json:"thread"`
	Head    Hash   `json:"head"` // uwf thread fork can restore it until the next garbage collection
	Removed bool   `json:"removed"`
}

// WorkflowRemoved is the output of workflow rm.
type WorkflowRemoved struct {
	Name    string `json:"name"`
	Hash    Hash   `json:"hash"`
	Removed bool   `json:"removed"`
}

// ThreadText is the output of thread read in JSON or YAML.
type ThreadText struct {
	Thread   string `json:"thread"`
	Markdown string `json:"markdown"`
}

// ThreadMessage is the output of thread message.
type ThreadMessage struct {
	Thread string `json:"thread"`
	Queued bool   `json:"queued"` // kept for the next agent
}

// ThreadStopped is the output of thread stop.
type ThreadStopped struct {
	Thread  string `json:"thread"`
	Stopped bool   `json:"stopped"`
}

// RunningThread is a thread that is being worked on.
type RunningThread struct {
	Thread    string `json:"thread"`
	Path      string `json:"path,omitempty"`  // path of a child, as on the command line: <thread>/<key>
	Label     string `json:"label,omitempty"` // see [ChildOutput]
	Workflow  Hash   `json:"workflow"`
	Pid       int    `json:"pid"`       // process ID of the uwf that makes the steps; 0 if it was killed and its agent still runs
	StartedAt int64  `json:"startedAt"` // start of the step, Unix milliseconds
	Role      string `json:"role"`
	Agent     string `json:"agent"` // as the user specified it
	AgentPid  int    `json:"agentPid"`
}

// WorkflowPut is the output of workflow put.
type WorkflowPut struct {
	Name string `json:"name"`
	Hash Hash   `json:"hash"`
}

// WorkflowItem is an item of a list of workflows.
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

// Validation is the output of workflow validate.
type Validation struct {
	Valid    bool      `json:"valid"`
	Errors   []string  `json:"errors"` // file:line:column: message
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is an error in a file written by a user.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // starts at 1; 0 if unknown
	Column  int    `json:"column,omitempty"` // starts at 1, in characters
	Message string `json:"message"`
	Excerpt string `json:"excerpt,omitempty"` // the offending line
	Remedy  string `json:"remedy,omitempty"`  // suggested correction
}

// RoleTotals is the total cost of a role.
type RoleTotals struct {
	Role string `json:"role"`
	Totals
}

// ThreadDiagnosis is the output of thread diagnose.
type ThreadDiagnosis struct {
	Thread   string          `json:"thread"`
	Status   Status          `json:"status"`
	Head     Hash            `json:"head"`
	Totals   *Totals         `json:"totals"`
	Run      *LastTry        `json:"run"` // last try of a step; null if unknown
	Findings []ThreadFinding `json:"findings"`
}

// ThreadFinding is a finding about a thread, with a remedy.
type ThreadFinding struct {
	Level   string `json:"level"` // error (the thread cannot continue), warning or note
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // a command, or another remedy
}

// LastTry is the last try of a step, in flight or not.
type LastTry struct {
	Role         string   `json:"role"`
	Agent        string   `json:"agent"`
	Command      []string `json:"command"`
	Status       string   `json:"status"`
	Alive        bool     `json:"alive"`
	StartedAt    int64    `json:"startedAt"`
	LastOutputAt *int64   `json:"heardAt"` // Unix milliseconds; null if the agent has written nothing
	Error        string   `json:"error,omitempty"`
	Stderr       string   `json:"stderr"`
	WorkerLog    string   `json:"workerLog,omitempty"`
	Dir          string   `json:"dir"`
}

// InboxItem is a thread that cannot continue without a person.
type InboxItem struct {
	Thread   string    `json:"thread"`
	Title    string    `json:"title,omitempty"`
	Workflow string    `json:"workflow"` // name of the workflow
	Status   Status    `json:"status"`   // suspended, error or corrupt
	Question *Question `json:"question,omitempty"`
	Reason   string    `json:"reason,omitempty"` // why it has stopped, if there is no question
	Since    *int64    `json:"since"`            // Unix milliseconds
	Command  string    `json:"command"`          // suggested command
	Totals   *Totals   `json:"totals,omitempty"` // saved sums only
}

// Notice is a notification about a thread at rest. It is the stdin of notify.command, and the body posted to
// notify.webhook.
type Notice struct {
	ID    string `json:"id"`    // stays the same when it is sent again
	Event string `json:"event"` // waiting, error, failed, completed or limit
	At    int64  `json:"at"`    // Unix milliseconds
	Text  string `json:"text"`  // one line
	InboxItem
	Link          string `json:"link,omitempty"`          // link that answers the question, once
	LinkExpiresAt *int64 `json:"linkExpiresAt,omitempty"` // Unix milliseconds
}

// FileChanges lists changed paths, relative to the root of the workspace.
type FileChanges struct {
	Changed []string `json:"changed,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Left    []string `json:"left,omitempty"` // paths omitted from the snapshot
}

// FileTotals counts the changes between two snapshots.
type FileTotals struct {
	Files   int `json:"files"` // added, changed and removed files
	Added   int `json:"added"` // lines; binary files count as none
	Removed int `json:"removed"`
}

// ThreadApplied is the output of thread apply. Branch and Commit are empty if a thread that works in the
// user's own files was continued on another machine: the files were updated to those of its last step.
type ThreadApplied struct {
	Thread string `json:"thread"`
	Branch string `json:"branch"` // branch with the result
	Commit string `json:"commit"` // commit of the branch
	// Merged means that the branch had new commits, and that the commit is a merge. Already means that the
	// branch contained the result before.
	Merged  bool         `json:"merged"`
	Already bool         `json:"already"`
	Root    string       `json:"root,omitempty"`  // the thread's directory, if it is the user's own
	Files   *FileChanges `json:"files,omitempty"` // files written in the work tree
	Left    []string     `json:"left,omitempty"`  // paths that only the thread's worktree contains
}

// FilesRedacted is the output of thread redact --files.
type FilesRedacted struct {
	Thread  string   `json:"thread"`
	Path    string   `json:"path"`
	States  int      `json:"states"`         // number of snapshots that contained the path
	Also    []string `json:"also,omitempty"` // other threads whose snapshots contained it
	Remains []string `json:"remains"`        // places that still contain the content
}

// Worktree is an item of uwf thread worktrees.
type Worktree struct {
	Path      string `json:"path"`
	Thread    string `json:"thread,omitempty"` // "" if it belongs to no thread
	Status    Status `json:"status,omitempty"` // status of the thread
	Branch    string `json:"branch,omitempty"` // "" if it is on no branch
	Base      string `json:"base,omitempty"`   // initial commit
	Repo      string `json:"repo,omitempty"`   // git directory of the repository
	CreatedAt int64  `json:"createdAt,omitempty"`
	Bytes     int64  `json:"bytes"`
	Gone      bool   `json:"gone"`            // it no longer exists
	Stays     string `json:"stays,omitempty"` // why it was not removed
}

// AnswerField holds the answer of a role without a schema.
const AnswerField = "answer"

// AnswerSchema returns the schema of a role without one. Its answer is a text, which prompts refer to as
// {{{answer}}}, and its only edge is "_".
func AnswerSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{AnswerField},
		"properties": map[string]any{AnswerField: map[string]any{"type": "string"}},
	}
}

// IsAnswerSchema reports whether a schema equals [AnswerSchema], ignoring the title that the store adds.
func IsAnswerSchema(schema any) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	m = maps.Clone(m)
	delete(m, "title")
	return reflect.DeepEqual(m, AnswerSchema())
}

// Stats is the output of stats: the cost of steps in groups.
type Stats struct {
	Since   *int64      `json:"since"` // Unix milliseconds; null means all steps
	By      []string    `json:"by"`
	Rows    []StatsRow  `json:"rows"`
	Totals  Totals      `json:"totals"`
	Threads int         `json:"threads"` // number of threads with these steps
	Unread  []StatsHole `json:"unread"`  // threads with unreadable steps
}

// StatsRow is one group, with a value for each name in By. An unknown model is "".
type StatsRow struct {
	Of map[string]string `json:"of"`
	Totals
}

// StatsHole is a thread that is missing in the sums, at least in part.
type StatsHole struct {
	Thread string `json:"thread"`
	Error  string `json:"error"`
}

// Merge adds the totals of other steps.
func (t *Totals) Merge(o Totals) {
	t.Steps += o.Steps
	t.DurationMs += o.DurationMs
	t.Spend(o.Usage)
	t.StepsWithoutUsage += o.StepsWithoutUsage
	t.StepsWithoutCost += o.StepsWithoutCost
}

// AgentCheck is an agent's report about the external program that it drives. The agent prints it as one JSON
// line when started with [FlagCheck] alone.
type AgentCheck struct {
	Program  string         `json:"program"` // absolute path; "" if it was not found
	Version  string         `json:"version"` // "" if unknown
	Problems []AgentProblem `json:"problems"`
}

// AgentProblem is a problem with a remedy.
type AgentProblem struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// ModulePath is the prefix of all import paths in this project. Programs are in ModulePath/cmd.
const ModulePath = "github.com/united-workforce/uwf"

// FlagCheck asks an agent about the program that it drives; see [AgentCheck].
const FlagCheck = "--check"

// Severity is the severity of a finding.
type Severity string

// Severities of findings.
const (
	SeverityOK      Severity = "ok"
	SeverityNote    Severity = "note"    // everything works
	SeverityWarning Severity = "warning" // something doesn't work, or will soon stop working
	SeverityProblem Severity = "problem" // no step can be made
)

// Finding is the result of one check of the doctor.
type Finding struct {
	Area     string   `json:"area"` // home, store, threads, config, agents, models, disk, sandbox, git
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // remedy: a command, or a change to make
	// ForAgents means that only roles played by agents are affected.
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
	Validation   *SetupValidation `json:"validation,omitempty"` // nil if the model was not tried
	May          string           `json:"may,omitempty"`        // the agent's permissions
	Probe        *SetupProbe      `json:"probe,omitempty"`      // nil if no role was played
	Replaced     *SetupReplaced   `json:"replaced,omitempty"`   // nil if no model in use was replaced
	Skills       []string         `json:"skills,omitempty"`     // files written by --skill
}

// SetupReplaced is the model that was in use before `uwf setup`.
type SetupReplaced struct {
	Alias    string `json:"alias"` // alias in models, which still exists
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"baseUrl"` // the provider's previous address
}

// SetupProbe is a test run of one role that answers one question.
type SetupProbe struct {
	OK     bool     `json:"ok"`
	Answer string   `json:"answer,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hints  []string `json:"hints,omitempty"` // remedies for the error
}

// SetupValidation reports whether the model answers.
type SetupValidation struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

//go:embed editor/*.json
var editorSchemas embed.FS

// EditorFile is a kind of file that users edit.
type EditorFile string

// Files with a schema for editors.
const (
	EditWorkflow EditorFile = "workflow" // a workflow file, in any of its forms
	EditConfig   EditorFile = "config"   // <home>/config.yaml
)

// EditorSchema returns a JSON Schema (draft-07) of a file, which editors use for completion and error
// checking. It accepts everything that uwf accepts. It cannot check some rules, such as the targets of edges;
// only uwf checks those. It panics if the file is not one of the constants, which is a programming error.
func EditorSchema(f EditorFile) []byte {
	b, err := editorSchemas.ReadFile("editor/" + string(f) + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for file %q", f))
	}
	return b
}

// MaxTitle is the maximum length of a thread's title, in characters.
const MaxTitle = 200

// TitleOf returns the default title of a thread: the first non-empty line of its task.
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

// Span formats a duration for people: 2h instead of 2h0m0s.
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
