package budget

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// totalsVersion must be increased when the meaning of the sums changes, so that older sums are discarded.
const totalsVersion = 4

// Sums holds the total cost of steps, and the number of agent runs, including failed tries, with unknown
// cost.
type Sums struct {
	protocol.Totals
	protocol.Unknown
}

// Replaced returns the cost of replaced steps.
func Replaced(r heads.Replaced) Sums {
	sum := Sums{Unknown: r.Unknown}
	if r.Totals != nil {
		sum.Totals = *r.Totals
	}
	return sum
}

// Add adds a step.
func (s *Sums) Add(step protocol.Step) {
	s.Totals.Add(step)
	if len(step.Children) == 0 {
		s.Judge(step.Usage)
	}
	for _, c := range step.Children {
		s.Judge(c.Usage)
	}
	for _, try := range step.Tries {
		s.Judge(try.Usage)
	}
}

// Mark is the cost of a chain up to and including one of its steps. A step's hash covers all steps before it,
// so a mark is valid for every chain that contains the step.
type Mark struct {
	Head protocol.Hash `json:"head"`
	Sums Sums          `json:"sums"`
	// Fork means that the thread was forked from this step.
	Fork bool `json:"fork,omitempty"`
}

// totalsCache is the content of totals.json. It makes it unnecessary to read a whole thread to determine its
// cost. It is only a cache: it is not flushed, and an invalid one counts as missing.
type totalsCache struct {
	Version int    `json:"version"`
	Marks   []Mark `json:"marks"`
}

// File is the totals.json of a run directory.
type File struct{ rundir.Dir }

// Add adds a new step to the saved sum of its predecessor. If there is none, the next reader computes the
// sum, so that the cost of a step doesn't depend on the length of the thread.
func (d File) Add(h protocol.Hash, s protocol.Step) {
	var before Sums
	marks, _ := d.Kept()
	if s.Prev != nil {
		at := Find(marks, *s.Prev, s.Index-1)
		if at == nil {
			return
		}
		before = at.Sums
	}
	d.Keep(marks, h, s, before)
}

// Keep saves and returns the sum including a step. It also keeps the sum before the step, because a poke
// replaces the step, and the sum at the step that the thread was forked from.
func (d File) Keep(known []Mark, h protocol.Hash, s protocol.Step, before Sums) Sums {
	sum := before
	sum.Add(s)
	marks := []Mark{{Head: h, Sums: sum}}
	if s.Prev != nil {
		marks = append(marks, Mark{Head: *s.Prev, Sums: before})
	}
	d.KeepMarks(append(marks, forked(known)...))
	return sum
}

func forked(marks []Mark) []Mark {
	return slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return !m.Fork })
}

// KeepMarks replaces the saved marks.
func (d File) KeepMarks(marks []Mark) {
	// On failure, the next reader computes the sum again.
	if data, err := EncodeTotals(marks); err == nil && !d.InTheWay() {
		_ = d.AddLine(runfiles.TotalsFile, data)
	}
}

// Kept returns the saved marks, or nil if there are no usable ones, and reports whether the file exists but is unusable.
func (d File) Kept() (marks []Mark, unusable bool) {
	data, err := d.ReadFile(runfiles.TotalsFile, rundir.MaxTotals)
	if err != nil {
		return nil, !errors.Is(err, fs.ErrNotExist)
	}
	marks = decodeTotals(data)
	return marks, marks == nil
}

// Find returns the mark at a step, or nil. It ignores a mark whose number of steps differs from the chain's.
func Find(marks []Mark, h protocol.Hash, index int) *Mark {
	i := slices.IndexFunc(marks, func(m Mark) bool { return m.Head == h && m.Sums.Steps == index+1 })
	if i < 0 {
		return nil
	}
	return &marks[i]
}

// EncodeTotals returns the content of totals.json for marks.
func EncodeTotals(marks []Mark) ([]byte, error) {
	data, err := json.Marshal(totalsCache{Version: totalsVersion, Marks: marks})
	return append(data, '\n'), err
}

func decodeTotals(data []byte) []Mark {
	var c totalsCache
	if json.Unmarshal(durable.LastLine(data), &c) != nil || c.Version != totalsVersion {
		return nil
	}
	return c.Marks
}

// WithTry adds the cost of a failed try.
func WithTry(s protocol.Amount, try runfiles.Try) protocol.Amount {
	var sum Sums
	sum.Unreported(runfiles.Tries{try})
	return s.Plus(SpentOf(sum))
}

// Unreported adds the cost of failed tries that are not part of a step.
func (s *Sums) Unreported(tries runfiles.Tries) {
	for _, t := range tries {
		s.Judge(t.Usage)
		if t.Usage != nil {
			s.Spend(t.Usage)
			s.DurationMs += t.Usage.DurationMs
		}
	}
}
