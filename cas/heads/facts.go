package heads

import (
	"cmp"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// Facts is what is known of a thread besides its chain. A field that is not set is
// not known. Each line of facts.jsonl is one change: its fields take the place of
// those before, null takes one away, and what this program does not know stays.
type Facts struct {
	Imported  *Imported         `json:"imported,omitempty"`
	Title     *string           `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Fork      *Fork             `json:"fork,omitempty"`
	Parent    *Parent           `json:"parent,omitempty"`
	Attempts  map[string]int    `json:"attempts,omitempty"` // by "<head>/<role>"
	Workspace *Workspace        `json:"workspace,omitempty"`
	// Repository is that of the thread's files, as every clone of it knows it.
	Repository *Repository     `json:"repository,omitempty"`
	Undone     []protocol.Hash `json:"undone,omitempty"`
	Limits     *Limits         `json:"limits,omitempty"`
	// ParkedUntil is in ms; ParkedAt is the head at which the thread waits, "" if an older program
	// has noted it.
	ParkedUntil int64         `json:"parkedUntil,omitempty"`
	ParkedAt    protocol.Hash `json:"parkedAt,omitempty"`
	// FilesLeft says that a person has left the files as they were when the head moved.
	FilesLeft *FilesLeft `json:"filesLeft,omitempty"`
	// Redacted is what was redacted of the thread's files.
	Redacted *Redacted `json:"redacted,omitempty"`
	Remote   *Remote   `json:"remote,omitempty"`
	// Agents are those chosen by a person on this machine, by role or [AllRoles].
	Agents map[string]string `json:"agents,omitempty"`

	// Doubt names a line that cannot be read and that may have said where the thread
	// comes from; nil: there is none, or a later line says it.
	Doubt error `json:"-"`
}

// FilesLeft are files that are not those of a thread's head, on purpose.
type FilesLeft struct {
	Head protocol.Hash `json:"head"`           // at which they were left; what is noted of another head is history
	Tree protocol.Tree `json:"tree,omitempty"` // "": not known
	// Ahead: an undo has left them, so a redo need not write any.
	Ahead bool `json:"ahead,omitempty"`
}

// AllRoles is the key for every role that is not listed; it is no valid name of a role.
const AllRoles = "*"

// Imported says that a thread was brought in from elsewhere.
type Imported struct {
	From string `json:"from"` // the file, as it was named
	AtMs int64  `json:"atMs"`
	// Confirmed: a person has said in which directory it may work here.
	Confirmed bool `json:"confirmed,omitempty"`
	// Inherited: the thread itself was made here, as a fork of such a thread, or has
	// gone on elsewhere since.
	Inherited bool `json:"inherited,omitempty"`
	// Lost: a line that may have said where the thread comes from is gone, so it may
	// also have been made here.
	Lost bool `json:"lost,omitempty"`
}

// Limits are what people have said of the cost of one run: when it was started, and
// since. A field that is not set is not said.
type Limits struct {
	MaxCostUSD float64 `json:"maxCostUsd,omitempty"`
	MaxTokens  int64   `json:"maxTokens,omitempty"`
	MaxTimeMs  int64   `json:"maxTimeMs,omitempty"`
	// More is what was granted beyond the limits, whoever set those.
	More Granted `json:"more,omitzero"`
	// Replaced is what the steps have cost that others took the place of. The chain
	// does not lead to them any more.
	Replaced Replaced `json:"replaced,omitzero"`
}

// Granted is what a run may cost beyond its limits, and of how many steps somebody has
// accepted that the cost is unknown.
type Granted struct {
	CostUSD   float64 `json:"costUsd,omitempty"`
	Tokens    int64   `json:"tokens,omitempty"`
	TimeMs    int64   `json:"timeMs,omitempty"`
	Unpriced  int     `json:"unpriced,omitempty"`
	Uncounted int     `json:"uncounted,omitempty"`
	Blind     int     `json:"blind,omitempty"` // neither is known
}

// Replaced are the sums of replaced steps.
type Replaced struct {
	Last   protocol.Hash    `json:"last"` // the newest of them
	Totals *protocol.Totals `json:"totals"`

	Unpriced  int `json:"unpriced,omitempty"`
	Uncounted int `json:"uncounted,omitempty"`
	Blind     int `json:"blind,omitempty"`
}

// Fork is what a thread was forked from.
type Fork struct {
	Thread string        `json:"thread,omitempty"` // "": not known
	Step   protocol.Hash `json:"step"`
}

// Parent is the step whose part a thread is.
type Parent struct {
	Thread  string        `json:"thread"`
	Head    protocol.Hash `json:"head"`
	Role    string        `json:"role"`
	Key     string        `json:"key"`
	Attempt int           `json:"attempt"`
}

// Workspace is where a thread works on this machine. It takes the place of the
// directory that its start names.
type Workspace struct {
	Mode   string `json:"mode"` // "none": the directory as it is
	Root   string `json:"root"` // absolute
	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// Repository says which one a thread works in, whatever the machine.
type Repository struct {
	Base string `json:"base"` // commit at which the thread began
	// Tree is the state of the files that it began with; "": not known.
	Tree protocol.Tree `json:"tree,omitempty"`
	// Dir is where it works below the root, with slashes; "": there.
	Dir string `json:"dir,omitempty"`
}

// Remote is where a thread was last pushed to.
type Remote struct {
	Name string        `json:"name"`
	Head protocol.Hash `json:"head"`
	AtMs int64         `json:"atMs"`
}

// Redacted says what was redacted of a thread's files. It travels with the thread, so that whoever has
// the thread continues without the content. Each list has at most [MaxRedacted] entries.
type Redacted struct {
	Paths    []string        `json:"paths"`
	Contents []protocol.Tree `json:"contents"` // git's names of the files' contents
	// Instead are the states that stand for those that held the content.
	Instead map[protocol.Tree]protocol.Tree `json:"instead,omitempty"`
}

// MaxRedacted bounds what is known of a redaction: with 2,000 contents a thread's facts have 100 KB.
const MaxRedacted = 2000

// And returns what either of two redactions says. nil says nothing.
func (r *Redacted) And(other *Redacted) *Redacted {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	both := Redacted{
		Paths: union(r.Paths, other.Paths), Contents: union(r.Contents, other.Contents),
		Instead: maps.Clone(r.Instead),
	}
	for tree, by := range other.Instead {
		if _, known := both.Instead[tree]; known || len(both.Instead) == MaxRedacted {
			continue
		}
		if both.Instead == nil {
			both.Instead = map[protocol.Tree]protocol.Tree{}
		}
		both.Instead[tree] = by
	}
	return &both
}

func union[S ~string](a, b []S) []S {
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), MaxRedacted)]
}

// Foreign reports whether the thread comes from elsewhere, or may do so, and nobody
// has said yet where it may work here.
func (f Facts) Foreign() bool {
	return f.Doubt != nil || f.Imported != nil && !f.Imported.Confirmed
}

// StartedHere reports whether the thread was made in this home.
func (f Facts) StartedHere() bool {
	return !f.Unclear() && (f.Imported == nil || f.Imported.Inherited)
}

// Unclear reports whether nobody knows any more if the thread was made in this home.
func (f Facts) Unclear() bool { return f.Doubt != nil || f.Imported != nil && f.Imported.Lost }
