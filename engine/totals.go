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
const totalsVersion = 2

// mark is what a chain has cost up to and with one of its steps. A step names all
// before it by their hashes, so a mark is true of every chain that leads to it.
type mark struct {
	Head   protocol.Hash   `json:"head"`
	Totals protocol.Totals `json:"totals"`
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
	var sum protocol.Totals
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
			sum = at.Totals
			break
		}
		newer = append(newer, step)
	}
	if len(newer) == 0 {
		return sum, nil
	}
	last := newer[0]
	for i := len(newer) - 1; i > 0; i-- { // oldest first, as they were made: sums of costs then agree to the last bit
		sum.Add(newer[i].Step)
	}
	if e.ReadOnly {
		sum.Add(last.Step)
		return sum, nil
	}
	return dir.keepTotals(last.Hash, last.Step, sum), nil
}

// addTotals goes on with the sum up to the step before one that was just made. If
// there is none, it is left to who asks next: a step costs the same however long
// the thread is.
func (d runDir) addTotals(h protocol.Hash, s protocol.Step) {
	var before protocol.Totals
	if s.Prev != nil {
		at := find(d.totals(), *s.Prev, s.Index-1)
		if at == nil {
			return
		}
		before = at.Totals
	}
	d.keepTotals(h, s, before)
}

// keepTotals returns the sum with a step, and keeps it. The one before the step
// is kept, too: a poke puts another step in its place.
func (d runDir) keepTotals(h protocol.Hash, s protocol.Step, before protocol.Totals) protocol.Totals {
	sum := before
	sum.Add(s)
	marks := []mark{{Head: h, Totals: sum}}
	if s.Prev != nil {
		marks = append(marks, mark{Head: *s.Prev, Totals: before})
	}
	// Whoever cannot keep it sums up anew.
	if data, err := encodeTotals(marks); err == nil && !d.inTheWay() {
		_ = d.replace(rundir.TotalsFile, data)
	}
	return sum
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
	i := slices.IndexFunc(marks, func(m mark) bool { return m.Head == h && m.Totals.Steps == index+1 })
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
