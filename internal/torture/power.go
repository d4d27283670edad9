package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/torture/trace"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// disks are the ways in which a store flushes, each with what a disk may do to it.
var disks = []struct {
	flush string
	model durabletest.Model
}{{"full", durabletest.Posix}, {"batch", durabletest.Ordered}}

// cutsPerCommand is how many outcomes of a command are tried before the next
// command has its turn; a long run comes back to it.
const cutsPerCommand = 12

// power records what whole commands do to the disk, agents included, and cuts
// the power after each system call, with everything that the disk may then
// hold. What was acknowledged must be there, and everything goes on.
func power(ctx context.Context, t *trial) error {
	possible := map[string]int{}
	for first := true; first || t.time(ctx) && !t.whole; first = false {
		all := subjects()
		t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, d := range disks {
			for _, sub := range all {
				if ctx.Err() != nil || !t.whole && !t.time(ctx) {
					break
				}
				if !strings.Contains(sub.name+": "+d.flush, t.match) {
					continue
				}
				n, err := t.cuts(ctx, sub, d.flush, d.model)
				if err != nil {
					return fmt.Errorf("%s, flush %s: %w", sub.name, d.flush, err)
				}
				possible[sub.name+d.flush] = n
			}
		}
	}
	outcomes := 0
	for _, n := range possible {
		outcomes += n
	}
	t.note("%d outcomes tried, of %d that %d commands × flush modes can leave", t.rounds, outcomes, len(possible))
	return nil
}

// cuts runs a command once, and tries what power cuts can leave of it. It
// returns how many different outcomes there are.
func (t *trial) cuts(ctx context.Context, sub subject, flush string, model durabletest.Model) (int, error) {
	s, err := t.stage(ctx, nil)
	if err != nil {
		return 0, err
	}
	if err := s.flushes(flush); err != nil {
		return 0, err
	}
	args, err := sub.prepare(ctx, s)
	if err != nil {
		return 0, err
	}
	before, err := asOps(s.dir)
	if err != nil {
		return 0, err
	}
	out, e, err := s.traced(ctx, trace.Plan{Under: s.dir, Record: true}, args)
	if err != nil {
		return 0, err
	}
	if e.Code != 0 || len(out.Ops) == 0 {
		return 0, fmt.Errorf("%d changes seen: %s", len(out.Ops), e)
	}
	r := recording{stage: s, before: len(before), ops: append(before, promised(out.Ops)...), model: model, said: e}
	r.told = len(before) + len(promised(out.Ops[:out.Told]))
	all := r.outcomes(func() bool { return t.short() && t.random.IntN(8) > 0 })
	n := len(all)
	if !t.whole {
		all = t.sample(all)
	}
	for _, c := range all {
		if err := t.cut(ctx, r, sub, c); err != nil {
			return n, err
		}
		t.rounds++
	}
	return n, removeAll(s.dir)
}

// sample chooses some outcomes, half of them from when the command has said that
// it has succeeded: then nothing may be missing.
func (t *trial) sample(all []cutAt) []cutAt {
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var chosen []cutAt
	for _, told := range []bool{true, false} {
		room := cutsPerCommand / 2
		for _, c := range all {
			if c.told == told && room > 0 {
				chosen = append(chosen, c)
				room--
			}
		}
	}
	return chosen
}

// recording is a command's changes of a disk, behind those that made the disk
// what it was before.
type recording struct {
	*stage
	before int // how many ops are from before
	ops    []durabletest.Op
	told   int // how many are done when the command says what it has done
	model  durabletest.Model
	said   ended
}

// cutAt is one thing that a power cut can leave.
type cutAt struct {
	ops    int  // that were done
	number int  // among the outcomes that there are then
	told   bool // the command has said that it has succeeded
}

// outcomes lists all that differ in what is on the disk, or in what was said. Skip
// says whether to leave out those of a moment before anything was said.
func (r recording) outcomes(skip func() bool) []cutAt {
	var all []cutAt
	seen := map[string]bool{}
	for n := r.before; n <= len(r.ops); n++ {
		if n < r.told && skip() {
			continue
		}
		number := 0
		for o := range durabletest.Replay(r.ops, n, r.model) {
			c := cutAt{n, number, n >= r.told}
			number++
			if key := fmt.Sprint(c.told, o.Key()); !seen[key] {
				seen[key] = true
				all = append(all, c)
			}
		}
	}
	return all
}

// cut holds the promises on what one power cut has left.
func (t *trial) cut(ctx context.Context, r recording, sub subject, c cutAt) error {
	number := 0
	for o := range durabletest.Replay(r.ops, c.ops, r.model) {
		if number++; number <= c.number {
			continue
		}
		dir := filepath.Join(t.dir, "cut")
		if err := o.Write(dir); err != nil {
			return err
		}
		after := r.elsewhere(dir)
		err := os.WriteFile(after.ledger.path, nil, 0o644)
		if err == nil {
			err = after.survived(ctx, sub, r.said, c.told)
		}
		if err != nil {
			return fmt.Errorf("cut after %d of %d changes (%s), left: %s: %w\nafter: %s",
				c.ops-r.before, len(r.ops)-r.before, last(r.ops[:c.ops]), o.Name, err, r.said)
		}
		return removeAll(dir)
	}
	return fmt.Errorf("outcome %d after %d operations is gone", c.number, c.ops)
}

func last(ops []durabletest.Op) durabletest.Op { return ops[len(ops)-1] }

// survived holds the promises after a power cut. Unlike after a kill, finished
// work may be done again: that an agent had finished is not flushed.
func (s *stage) survived(ctx context.Context, sub subject, said ended, told bool) error {
	if told {
		s.promise.heard(said.Stdout)
		if err := sub.done(ctx, s, said); err != nil {
			return fmt.Errorf("it was acknowledged: %w", err)
		}
	}
	return s.check(ctx)
}

// elsewhere is a stage whose files are in another directory.
func (s *stage) elsewhere(dir string) *stage {
	w := *s.world
	w.dir, w.home = dir, filepath.Join(dir, "home")
	w.ledger = ledger{path: filepath.Join(dir, "ledger")}
	w.env = append(slices.Clone(s.env), "UWF_HOME="+w.home, ledgerVariable+"="+w.ledger.path)
	at := &stage{world: &w, base: s.base, subjectThread: s.subjectThread, rounds: s.rounds, importHome: s.importHome}
	if s.importHome != "" {
		at.importHome = filepath.Join(dir, filepath.Base(s.importHome))
	}
	at.promise.acks = maps.Clone(s.promise.acks)
	return at
}

// promised leaves out what no promise is about: the log, and locks.
func promised(ops []durabletest.Op) []durabletest.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op durabletest.Op) bool { return unpromised(op.Path) })
}

func unpromised(path string) bool {
	return path == "ledger" || strings.HasPrefix(path, "home/logs/") || strings.HasSuffix(path, ".lock")
}

// asOps says what is in a directory as what has made it, and flushes it all.
func asOps(dir string) ([]durabletest.Op, error) {
	var ops []durabletest.Op
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." || unpromised(rel) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			ops = append(ops, durabletest.Op{Kind: durabletest.OpMkdir, Path: rel, Perm: info.Mode().Perm()})
			return nil
		}
		data, err := os.ReadFile(path)
		ops = append(ops, durabletest.Op{Kind: durabletest.OpAppend, Path: rel, Data: data, Perm: info.Mode().Perm()})
		return err
	})
	return append(ops, durabletest.Op{Kind: durabletest.OpSyncAll, Path: "."}), err
}

// flushes sets how the store flushes.
func (w *world) flushes(mode string) error {
	path := filepath.Join(w.home, "cas", "format.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), `"flush":"auto"`, `"flush":"`+mode+`"`, 1)
	if changed == string(text) {
		return fmt.Errorf("%s does not say how to flush: %s", path, text)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
