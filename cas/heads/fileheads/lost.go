package fileheads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// Lost returns the threads that have run and that neither threads.yaml nor history.jsonl has, sorted:
// their lines were lost, or their ids are damaged there. If there are any, or if threads.yaml was lost
// as a whole, so are threads with nothing but facts: a killed command can leave facts without a thread.
func (x *Heads) Lost(ctx context.Context) (lost []string, err error) {
	runs, err := os.ReadDir(x.path("runs")) // before the files: a thread is in one of them before it runs
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]bool{}
	for h := range x.Heads(ctx) { // a line that cannot be read may be any: see nowhere
		known[h.Thread] = true
	}
	says, _ := x.saysFacts()
	says = says || !isThere(x.path(factsFile))
	runs = slices.DeleteFunc(runs, func(e fs.DirEntry) bool { return known[e.Name()] || !threadid.Valid(e.Name()) })
	if len(runs) == 0 && says {
		return nil, ctx.Err()
	}
	ends, _, err := x.lastEnds()
	if err != nil {
		return nil, err
	}
	add := func(id string) {
		if _, ended := ends[id]; !known[id] && !ended && x.nowhere(ctx, id) {
			known[id] = true
			lost = append(lost, id)
		}
	}
	for _, e := range runs {
		run := runfiles.Dir(filepath.Join(x.path("runs"), e.Name()))
		if _, err := run.Read(runfiles.RecordFile, runfiles.MaxRecord); err == nil {
			add(e.Name())
		}
	}
	if !says || len(lost) > 0 {
		facts, _ := x.AllFacts(ctx) // lines that cannot be read are reported with the facts
		for id, f := range facts {
			if f.Doubt == nil {
				add(id)
			}
		}
	}
	slices.Sort(lost)
	return lost, ctx.Err()
}

// nowhere looks once more: the thread may have begun or been resumed since. A damaged line that
// mentions it was reported already.
func (x *Heads) nowhere(ctx context.Context, id string) bool {
	if _, err := x.Head(ctx, id); !errors.Is(err, heads.ErrNoThread) {
		return false
	}
	_, err := x.Ended(ctx, id)
	return errors.Is(err, heads.ErrNoThread)
}

// CheckLost is an error if threads are lost ([Heads.Lost]).
func (x *Heads) CheckLost(ctx context.Context) error {
	lost, err := x.Lost(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	return &protocol.Error{
		Code: protocol.CodeCorrupt,
		Message: fmt.Sprintf("%s has lost %s, such as %s, and history.jsonl does not have it: "+
			"restore the file from a backup", x.path(threadsFile), render.Count(len(lost), "thread"), lost[0]),
	}
}
