package budget

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// totalsVersion is raised when what is summed up changes: older sums are then
// made again.
const totalsVersion = 4

// Sums are what steps have cost together, and of how many runs of agents, failed
// tries included, that is not known.
type Sums struct {
	protocol.Totals
	protocol.Unknown
}

// Replaced is what steps have cost whose place others have taken.
func Replaced(r heads.Replaced) Sums {
	sum := Sums{Unknown: r.Unknown}
	if r.Totals != nil {
		sum.Totals = *r.Totals
	}
	return sum
}

// Add counts a step.
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

// Mark is what a chain has cost up to and with one of its steps. A step names all
// before it by their hashes, so a mark is true of every chain that leads to it.
type Mark struct {
	Head protocol.Hash `json:"head"`
	Sums Sums          `json:"sums"`
	// Fork: it is the step that the thread was forked from.
	Fork bool `json:"fork,omitempty"`
}

// totalsCache is totals.json. It keeps telling what a thread has cost from
// reading the whole thread. Losing it loses nothing: it is not flushed, and what
// is not right with it counts as not there.
type totalsCache struct {
	Version int    `json:"version"`
	Marks   []Mark `json:"marks"`
}

// totalsFile keeps a [totalsCache].
type File struct{ rundir.Dir }

// Add goes on with the sum up to the step before one that was just made. If
// there is none, it is left to whoever asks next: a step costs the same however long
// the thread is.
func (d File) Add(h protocol.Hash, s protocol.Step) {
	var before Sums
	marks := d.Marks()
	if s.Prev != nil {
		at := Find(marks, *s.Prev, s.Index-1)
		if at == nil {
			return
		}
		before = at.Sums
	}
	d.Keep(marks, h, s, before)
}

// Keep returns the sum with a step, and keeps it. The one before the step
// is kept, too: a poke puts another step in its place. So is that of the step that
// the thread was forked from.
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

// KeepMarks replaces what is kept.
func (d File) KeepMarks(marks []Mark) {
	// Whoever cannot keep it sums up again.
	if data, err := EncodeTotals(marks); err == nil && !d.InTheWay() {
		_ = d.Replace(runfiles.TotalsFile, data)
	}
}

// Marks reads what was kept, nil if there is nothing that can be used.
func (d File) Marks() []Mark {
	marks, _ := d.Kept()
	return marks
}

// Kept is Marks, and whether something is there that cannot be used.
func (d File) Kept() (marks []Mark, unusable bool) {
	data, err := d.ReadFile(runfiles.TotalsFile, rundir.MaxTotals)
	if err != nil {
		return nil, !errors.Is(err, fs.ErrNotExist)
	}
	marks = decodeTotals(data)
	return marks, marks == nil
}

// Find returns the mark at a step, nil if there is none: one that does not count
// as many steps as the chain has is not believed.
func Find(marks []Mark, h protocol.Hash, index int) *Mark {
	i := slices.IndexFunc(marks, func(m Mark) bool { return m.Head == h && m.Sums.Steps == index+1 })
	if i < 0 {
		return nil
	}
	return &marks[i]
}

// EncodeTotals is totals.json with marks.
func EncodeTotals(marks []Mark) ([]byte, error) {
	data, err := json.Marshal(totalsCache{Version: totalsVersion, Marks: marks})
	return append(data, '\n'), err
}

func decodeTotals(data []byte) []Mark {
	var c totalsCache
	if json.Unmarshal(data, &c) != nil || c.Version != totalsVersion {
		return nil
	}
	return c.Marks
}

// WithTry is what was spent with a failed try.
func WithTry(s protocol.Amount, try runfiles.Try) protocol.Amount {
	var sum Sums
	sum.Unreported(runfiles.Tries{try})
	return s.Plus(SpentOf(sum))
}

// Unreported is what failed tries have cost.
func (s *Sums) Unreported(tries runfiles.Tries) {
	for _, t := range tries {
		s.Judge(t.Usage)
		if t.Usage != nil {
			s.Spend(t.Usage)
			s.DurationMs += t.Usage.DurationMs
		}
	}
}
