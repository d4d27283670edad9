// Package summary remembers what lists and sums show of nodes. All of it follows from a node and those that it
// refers to, so it can't become outdated. What can change, such as a limit, the clock, or a process at work, is
// not in it, except for the time of a run directory that had nothing to add.
//
// A [Set] can be saved in a file, which only saves time: a missing, damaged or other file counts as empty.
// No decision depends on it, so a forged file changes only what lists show.
package summary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/sorting"
)

// Node is what is remembered of a start or a step.
type Node struct {
	Workflow    protocol.Hash
	Title, Dir  string         // of the start
	Steps       int            // in the chain up to the node; 0: a start
	CompletedAt int64          // of the step; ms
	Step        *protocol.Step // nil: a start. It lacks the fields that [Set] doesn't keep
	Partial     bool           // the step has tries or children, which are not kept
	Model       *string        // of the step; nil: unknown
	Next        *Next          // nil: unknown, or it doesn't follow from the node alone
	// Ran is when the run directory of a thread at this head had changed last, if it then had nothing to add, apart from
	// Totals; 0: unknown.
	Ran    int64
	Totals *protocol.Totals // up to the node; nil: unknown
}

// Next is the decision at a node, unless a limit is reached.
type Next struct {
	Status  protocol.Status
	Role    string
	Counted int // steps since a limit was last lifted
	Visits  int // the most of any role
}

// Set maps nodes to what is remembered of them. The zero value is empty and remembers in memory only; nil remembers
// nothing. It is safe for concurrent use.
type Set struct {
	saved file

	mu    sync.RWMutex
	fresh []byte // records
	at    map[uint64]int
	texts []string
	index map[string]uint32
}

// file is the content of a file.
type file struct {
	records []byte // sorted by hash
	used    []atomic.Bool
	ends    []byte // of the texts
	texts   string
	info    fs.FileInfo // nil: none
}

// record is the form of a node in memory and in the file.
type record struct {
	Hash, Workflow, Prev, Detail                                  uint64
	Started, Completed, Index, Counted, Visits, Ran               int64
	Turns, Input, CacheRead, CacheWrite, Output, Reasoning, Spent int64
	Cost                                                          float64
	Title, Dir, Role, Agent, Model, Status, NextRole, Totals, Has uint32
}

const recordSize = 17*8 + 8 + 9*4

// Bits of Has.
const (
	isStep = 1 << iota
	isPartial
	hasPrev
	hasUsage
	hasCost
	hasModel
	hasNext
	hasTotals
)

// Get returns a node, if it is known.
func (s *Set) Get(h protocol.Hash) (Node, bool) { return s.get(h, true) }

// Glance is [Set.Get] without Step.
func (s *Set) Glance(h protocol.Hash) (Node, bool) { return s.get(h, false) }

func (s *Set) get(h protocol.Hash, step bool) (Node, bool) {
	if s == nil {
		return Node{}, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	number := h.Number()
	if at, ok := s.at[number]; ok {
		return decode(s.fresh[at:], func(i uint32) string { return s.texts[i] }, step), true
	}
	i, ok := s.saved.find(number)
	if !ok {
		return Node{}, false
	}
	s.saved.used[i].Store(true)
	return decode(s.saved.records[i*recordSize:], s.saved.text, step), true
}

func (f *file) find(number uint64) (int, bool) {
	return sort.Find(len(f.used), func(i int) int {
		return cmp.Compare(number, binary.BigEndian.Uint64(f.records[i*recordSize:]))
	})
}

func (f *file) text(i uint32) string {
	if int(i) >= len(f.ends)/4 {
		return ""
	}
	from, end := uint32(0), binary.BigEndian.Uint32(f.ends[4*i:])
	if i > 0 {
		from = binary.BigEndian.Uint32(f.ends[4*(i-1):])
	}
	if from > end || int(end) > len(f.texts) {
		return ""
	}
	return f.texts[from:end]
}

// maxNodes bounds the memory and the file: 200,000 records are 34 MB.
const maxNodes = 200_000

// Put remembers a node, unless there are too many.
func (s *Set) Put(h protocol.Hash, n Node) {
	if s == nil || !h.Valid() || !n.Workflow.Valid() || n.Step != nil && !n.Step.Detail.Valid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at, s.index = map[uint64]int{}, map[string]uint32{}
	}
	at, known := s.at[h.Number()]
	if !known && len(s.at) == maxNodes {
		return
	}
	r := record{Hash: h.Number(), Workflow: n.Workflow.Number(), Title: s.number(n.Title), Dir: s.number(n.Dir)}
	if n.Step != nil {
		s.addStep(&r, *n.Step)
	}
	if n.Partial {
		r.Has |= isPartial
	}
	if n.Model != nil {
		r.Has, r.Model = r.Has|hasModel, s.number(*n.Model)
	}
	if n.Next != nil {
		r.Has, r.Status, r.NextRole = r.Has|hasNext, s.number(string(n.Next.Status)), s.number(n.Next.Role)
		r.Counted, r.Visits = int64(n.Next.Counted), int64(n.Next.Visits)
	}
	if r.Ran = n.Ran; n.Totals != nil {
		if text, err := json.Marshal(n.Totals); err == nil {
			r.Has, r.Totals = r.Has|hasTotals, s.number(string(text))
		}
	}
	if known {
		copy(s.fresh[at:at+recordSize], encode(nil, r))
		return
	}
	s.at[r.Hash] = len(s.fresh)
	s.fresh = encode(s.fresh, r)
}

func encode(to []byte, r record) []byte {
	out, err := binary.Append(to, binary.BigEndian, r)
	if err != nil {
		panic("summary: " + err.Error()) // the size of a record is fixed
	}
	return out
}

func (s *Set) addStep(r *record, step protocol.Step) {
	r.Has |= isStep
	r.Detail, r.Role, r.Agent = step.Detail.Number(), s.number(step.Role), s.number(step.Agent)
	r.Started, r.Completed, r.Index = step.StartedAtMs, step.CompletedAtMs, int64(step.Index)
	if step.Prev != nil {
		r.Has, r.Prev = r.Has|hasPrev, step.Prev.Number()
	}
	if u := step.Usage; u != nil {
		r.Has |= hasUsage
		r.Turns, r.Input, r.CacheRead, r.CacheWrite = int64(u.Turns), u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens
		r.Output, r.Reasoning, r.Spent = u.OutputTokens, u.ReasoningTokens, u.DurationMs
		if u.CostUSD != nil {
			r.Has, r.Cost = r.Has|hasCost, *u.CostUSD
		}
	}
}

// number returns the index of a text.
func (s *Set) number(text string) uint32 {
	i, ok := s.index[text]
	if !ok {
		i = uint32(len(s.texts))
		s.texts = append(s.texts, text)
		s.index[text] = i
	}
	return i
}

func decode(data []byte, text func(uint32) string, step bool) Node {
	var r record
	_, _ = binary.Decode(data, binary.BigEndian, &r) // there are enough bytes
	n := Node{Workflow: protocol.HashOf(r.Workflow), Title: text(r.Title), Dir: text(r.Dir), Partial: r.Has&isPartial != 0}
	if n.Ran = r.Ran; r.Has&hasTotals != 0 {
		_ = json.Unmarshal([]byte(text(r.Totals)), &n.Totals) // it was written by Put
	}
	if r.Has&isStep != 0 {
		n.Steps, n.CompletedAt = int(r.Index)+1, r.Completed
		if step {
			n.Step = r.step(text)
		}
	}
	if r.Has&hasModel != 0 {
		model := text(r.Model)
		n.Model = &model
	}
	if r.Has&hasNext != 0 {
		n.Next = &Next{protocol.Status(text(r.Status)), text(r.NextRole), int(r.Counted), int(r.Visits)}
	}
	return n
}

func (r *record) step(text func(uint32) string) *protocol.Step {
	step := &protocol.Step{Detail: protocol.HashOf(r.Detail), Role: text(r.Role), Agent: text(r.Agent),
		StartedAtMs: r.Started, CompletedAtMs: r.Completed, Index: int(r.Index)}
	if r.Has&hasPrev != 0 {
		prev := protocol.HashOf(r.Prev)
		step.Prev = &prev
	}
	if r.Has&hasUsage != 0 {
		step.Usage = &protocol.Usage{Turns: int(r.Turns), InputTokens: r.Input, CacheReadTokens: r.CacheRead,
			CacheWriteTokens: r.CacheWrite, OutputTokens: r.Output, ReasoningTokens: r.Reasoning, DurationMs: r.Spent}
		if r.Has&hasCost != 0 {
			step.Usage.CostUSD = &r.Cost
		}
	}
	return step
}

// The file is the first line, a CRC-32C of the rest, the numbers of records and of texts, the records sorted by
// hash, the ends of the texts, and the texts. All numbers are big endian.
const (
	firstLine  = "summaries 1 "
	fixedBytes = 3 * 4
	maxFile    = 256 << 20
)

// line returns the first line. The decision at a node can differ between programs.
func line() string {
	out := firstLine
	if info, ok := debug.ReadBuildInfo(); ok {
		out += info.Main.Version
	}
	return out + "\n"
}

// Load reads a file into an empty set.
func (s *Set) Load(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	data, err := safeopen.ReadFile(path, maxFile, safeopen.NoFollow)
	rest, ok := bytes.CutPrefix(data, []byte(line()))
	if err != nil || !ok || len(rest) < fixedBytes || sum(rest[4:]) != binary.BigEndian.Uint32(rest) {
		return
	}
	records, texts := int(binary.BigEndian.Uint32(rest[4:])), int(binary.BigEndian.Uint32(rest[8:]))
	rest = rest[fixedBytes:]
	if len(rest) < recordSize*records+4*texts {
		return
	}
	f := file{records: rest[:recordSize*records], used: make([]atomic.Bool, records), info: info}
	rest = rest[len(f.records):]
	f.ends, f.texts = rest[:4*texts], string(rest[4*texts:])
	s.saved = f
}

func sum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// Save replaces the file that was loaded if enough is new: reading few nodes again is cheaper. When there are too many,
// nodes that were not asked for are forgotten. It flushes nothing, and does nothing if the file was removed or
// replaced in between.
func (s *Set) Save(fsys durable.FS, path string) error {
	const least, share = 64, 32
	if len(s.at) < least || len(s.at) < len(s.saved.used)/share {
		return nil
	}
	now, err := os.Lstat(path)
	if was := s.saved.info; was != nil && (err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime())) {
		return nil // removed with a node that it showed, and perhaps written again without it
	}
	all := s
	if s.saved.info != nil {
		all = s.merged()
	}
	if err := fsys.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(fsys, path, all.content(), 0o600)
}

// Forget removes a file, because a node that it may show was removed or redacted.
func Forget(fsys durable.FS, path string) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// merged returns what is new and what was loaded as one set, up to the maximum.
func (s *Set) merged() *Set {
	all := &Set{}
	for _, onlyUsed := range []bool{true, false} {
		for i := range s.saved.used {
			record := s.saved.records[i*recordSize:]
			number := binary.BigEndian.Uint64(record)
			if _, again := s.at[number]; !again && s.saved.used[i].Load() == onlyUsed && len(all.at)+len(s.at) < maxNodes {
				all.Put(protocol.HashOf(number), decode(record, s.saved.text, true))
			}
		}
	}
	for number, at := range s.at {
		all.Put(protocol.HashOf(number), decode(s.fresh[at:], func(i uint32) string { return s.texts[i] }, true))
	}
	return all
}

// content returns the file of a set that was not loaded.
func (s *Set) content() []byte {
	first := line()
	out := append(make([]byte, 0, len(first)+fixedBytes+len(s.fresh)+64*len(s.texts)), first...)
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(s.at)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(s.texts)))
	sorted := slices.Collect(slices.Chunk(s.fresh, recordSize))
	sorting.Func(sorted, bytes.Compare)
	for _, r := range sorted {
		out = append(out, r...)
	}
	end := 0
	for _, text := range s.texts {
		end += len(text)
		out = binary.BigEndian.AppendUint32(out, uint32(min(end, math.MaxUint32)))
	}
	for _, text := range s.texts {
		out = append(out, text...)
	}
	binary.BigEndian.PutUint32(out[len(first):], sum(out[len(first)+4:]))
	return out
}
