package app

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// keptFiles lets the store's commands handle the files of steps.
type keptFiles struct{ *App }

// CollectFiles implements ocascli.Files.
func (a keptFiles) CollectFiles(ctx context.Context, homes []string, dry bool, alone func(func() error) error) (any, string, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	done, err := e.Files().CollectFiles(ctx, homes, dry, alone)
	for _, failed := range done.Failed {
		a.Say("uwf: %v", failed)
		a.Status = protocol.CodeFailed
	}
	if err != nil || done.Repositories+len(done.Failed) == 0 {
		return nil, "", err
	}
	verb := "forgot"
	if dry {
		verb = "would forget"
	}
	line := fmt.Sprintf("%s the files of %s", verb, render.Count(done.Refs, "thread"))
	if !dry {
		line += fmt.Sprintf(", %d KB freed", done.Freed>>10)
	}
	if done.Worktrees > 0 {
		line += "\nremoved " + render.Count(done.Worktrees, "worktree") + " that killed commands have left"
	}
	if done.Removed > 0 {
		line += fmt.Sprintf("\nremoved what was kept of %d repositories that are gone", done.Removed)
	}
	return done, line, nil
}

// CheckFiles implements ocascli.Files.
func (a keptFiles) CheckFiles(ctx context.Context, wrong func(fsck.Fault)) (int, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return 0, err
	}
	facts, _ := e.Heads.AllFacts(ctx) // fsck reports lines that cannot be read
	return e.Files().CheckFiles(ctx, func(f workspace.FileFault) {
		fault := fsck.Fault{Kind: fsck.Files, Hash: f.Step, Path: f.Store, Threads: []string{f.Thread}, Dependents: 1, Remains: true}
		fault.Message = fmt.Sprintf("the files of this step, %s, are damaged: %v", f.Tree, f.Err)
		if f.Err == nil {
			fault.Message = fmt.Sprintf("the files of this step, %s, are not on this machine", f.Tree)
			fault.Remains = facts[f.Thread].Imported == nil && isThere(facts[f.Thread].Workspace)
		}
		wrong(fault)
	})
}

// isThere reports whether a workspace's repository exists: without it its files are gone.
func isThere(w *heads.Workspace) bool {
	if w == nil || w.Repo == "" {
		return false
	}
	_, err := os.Stat(w.Repo)
	return err == nil
}
