package engine

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/rundir"
)

// totalsVersion is raised when what is summed up changes: older sums are then
// made anew.
const totalsVersion = 3

// sums are what steps have cost together, and of how many runs of agents, failed
// tries included, that is not known.
type sums struct {
	protocol.Totals
	Unpriced  int `json:"unpriced"`
	Uncounted int `json:"uncounted"`
	Blind     int `json:"blind"` // neither the cost nor the tokens are known
}

func (s *sums) add(step protocol.Step) {
	s.Add(step)
	if len(step.Children) == 0 {
		s.judge(step.Usage)
	}
	for _, c := range step.Children {
		s.judge(c.Usage)
	}
	for _, try := range step.Tries {
		s.judge(try.Usage)
	}
}

// judge counts what is not known of a run.
func (s *sums) judge(u *protocol.Usage) {
	priced, counted := u.IsPriced(), u.Counted()
	if !priced {
		s.Unpriced++
	}
	if !counted {
		s.Uncounted++
	}
	if !priced && !counted {
		s.Blind++
	}
}

// mark is what a chain has cost up to and with one of its steps. A step names all
// before it by their hashes, so a mark is true of every chain that leads to it.
type mark struct {
	Head protocol.Hash `json:"head"`
	Sums sums          `json:"sums"`
	// Fork: it is the step that the thread was forked from.
	Fork bool `json:"fork,omitempty"`
}

// totalsCache is totals.json. It keeps telling what a thread has cost from
// reading the whole thread. Losing it loses nothing: it is not flushed, and what
// is not right with it counts as not there.
type totalsCache struct {
	Version int             `json:"version"`
	Check   uint32          `json:"check"` // CRC-32 of Marks as they are written
	Marks   json.RawMessage `json:"marks"`
}

// Totals sums up the steps of a thread's chain up to head. It reads the steps
// since the last one that was summed up, and keeps the new sum if it can: a home
// that cannot be written will do. It takes no lock. An error is of a node that
// has to be read.
func (e *Engine) Totals(ctx context.Context, id string, head protocol.Hash) (protocol.Totals, error) {
	sum, err := e.sumUp(ctx, id, head)
	return sum.Totals, err
}

func (e *Engine) sumUp(ctx context.Context, id string, head protocol.Hash) (sums, error) {
	var sum sums
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return sum, coded(err)
	}
	dir := e.runDir(id)
	marks := dir.totals()
	var newer []thread.Step // newest first
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return sum, coded(err)
		}
		if at := find(marks, step.Hash, step.Index); at != nil {
			sum = at.Sums
			break
		}
		newer = append(newer, step)
	}
	if len(newer) == 0 {
		return sum, nil
	}
	last := newer[0]
	for i := len(newer) - 1; i > 0; i-- { // oldest first, as they were made: sums of costs then agree to the last bit
		sum.add(newer[i].Step)
	}
	if e.ReadOnly {
		sum.add(last.Step)
		return sum, nil
	}
	return dir.keepTotals(marks, last.Hash, last.Step, sum), nil
}

// addTotals goes on with the sum up to the step before one that was just made. If
// there is none, it is left to who asks next: a step costs the same however long
// the thread is.
func (d runDir) addTotals(h protocol.Hash, s protocol.Step) {
	var before sums
	marks := d.totals()
	if s.Prev != nil {
		at := find(marks, *s.Prev, s.Index-1)
		if at == nil {
			return
		}
		before = at.Sums
	}
	d.keepTotals(marks, h, s, before)
}

// keepTotals returns the sum with a step, and keeps it. The one before the step
// is kept, too: a poke puts another step in its place. So is that of the step that
// the thread was forked from.
func (d runDir) keepTotals(known []mark, h protocol.Hash, s protocol.Step, before sums) sums {
	sum := before
	sum.add(s)
	marks := []mark{{Head: h, Sums: sum}}
	if s.Prev != nil {
		marks = append(marks, mark{Head: *s.Prev, Sums: before})
	}
	d.keepMarks(append(marks, forked(known)...))
	return sum
}

func forked(marks []mark) []mark {
	return slices.DeleteFunc(slices.Clone(marks), func(m mark) bool { return !m.Fork })
}

func (d runDir) keepMarks(marks []mark) {
	// Whoever cannot keep it sums up anew.
	if data, err := encodeTotals(marks); err == nil && !d.inTheWay() {
		_ = d.replace(rundir.TotalsFile, data)
	}
}

// before is what a fork's chain had cost when it was forked. It is summed up once.
func (e *Engine) before(ctx context.Context, id string, step protocol.Hash) (sums, error) {
	dir := e.runDir(id)
	marks := dir.totals()
	if i := slices.IndexFunc(marks, func(m mark) bool { return m.Fork && m.Head == step }); i >= 0 {
		return marks[i].Sums, nil
	}
	sum, err := e.sumUp(ctx, id, step)
	if err == nil && !e.ReadOnly {
		own := slices.DeleteFunc(marks, func(m mark) bool { return m.Fork })
		dir.keepMarks(append(own, mark{Head: step, Sums: sum, Fork: true}))
	}
	return sum, err
}

// totals reads what was kept, nil if there is nothing that can be used.
func (d runDir) totals() []mark {
	data, err := d.readFile(rundir.TotalsFile, maxTotals)
	if err != nil {
		return nil
	}
	return decodeTotals(data)
}

// find returns the mark at a step, nil if there is none: one that does not count
// as many steps as the chain has is not believed.
func find(marks []mark, h protocol.Hash, index int) *mark {
	i := slices.IndexFunc(marks, func(m mark) bool { return m.Head == h && m.Sums.Steps == index+1 })
	if i < 0 {
		return nil
	}
	return &marks[i]
}

func encodeTotals(marks []mark) ([]byte, error) {
	raw, err := json.Marshal(marks)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(totalsCache{Version: totalsVersion, Check: crc32.ChecksumIEEE(raw), Marks: raw})
	return append(data, '\n'), err
}

func decodeTotals(data []byte) []mark {
	var c totalsCache
	var marks []mark
	if json.Unmarshal(data, &c) != nil || c.Version != totalsVersion || c.Check != crc32.ChecksumIEEE(c.Marks) ||
		json.Unmarshal(c.Marks, &marks) != nil {
		return nil
	}
	return marks
}
