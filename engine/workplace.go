package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Workplace is the directory in which a role of a thread would work: where a
// location leads from the directory that the thread was started in. It has no
// symbolic links. What may not be is refused here, before anybody is paid. Errors
// are *protocol.Error.
func (e *Engine) Workplace(ctx context.Context, role, started, location string) (string, error) {
	rules, listed, err := e.placeRules(ctx, started)
	if err != nil {
		return "", fault.Of(err)
	}
	dir, err := rules.Resolve(location)
	if err != nil {
		return "", e.misplacedRole(role, located(rules.Thread, location), listed, err)
	}
	return dir, nil
}

// chosen is the directory that a person wants a thread to work in, without symbolic
// links.
func (e *Engine) chosen(ctx context.Context, cwd string) (string, error) {
	dir, err := place.Real(cwd)
	if err != nil {
		return "", fault.Of(err)
	}
	return e.Workplace(ctx, "", dir, "")
}

// workplace is the directory in which the attempt is to be made. Where the thread's
// own is gone there is a way on: another one.
func (a *attempt) workplace(ctx context.Context) (string, error) {
	dir, err := a.Workplace(ctx, a.task.role, a.pos.Dir(), a.task.cwd)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if _, gone := place.Real(a.pos.Dir()); gone != nil {
		if w := a.locked.workspace; w != nil && w.Mode == workspace.InWorktree {
			return "", fault.Hinted(fault.Of(err), "uwf thread fork "+string(a.locked.head)+" has another worktree with the same files")
		}
		return "", fault.Hinted(fault.Of(err), a.again()+" --cwd DIR lets the thread work elsewhere, now and later")
	}
	return dir, err
}

// placeRules are those of a thread that was started in a directory, with the
// directories that the config lists as it lists them.
func (e *Engine) placeRules(ctx context.Context, started string) (place.Rules, []string, error) {
	c, err := e.Config(ctx)
	if err != nil {
		return place.Rules{}, nil, err
	}
	if started == "" { // the original's first versions had none
		if started, err = place.Real(e.Env.Dir); err != nil {
			return place.Rules{}, nil, err
		}
	}
	rules := place.Rules{Thread: started, User: home.User(e.Env)}
	for _, dir := range c.AllowLocations {
		dir, err := home.Absolute(e.Env, dir)
		if err != nil {
			return rules, nil, fmt.Errorf("allowLocations: %w", err)
		}
		rules.Allowed = append(rules.Allowed, dir)
	}
	return rules, c.AllowLocations, nil
}

// misplacedRole says why a role, or with "" a whole thread, cannot work in a
// directory, and what would allow it. Where a link leads is said only if the thread may not go there.
func (e *Engine) misplacedRole(role, dir string, listed []string, err error) error {
	var (
		outside *place.OutsideError
		moved   *place.MovedError
		file    *place.NoDirError
		special *place.SpecialError
	)
	who := "a thread"
	if role != "" {
		who = fmt.Sprintf("role %q", role)
	}
	fail := func(code protocol.Code, format string, args ...any) *protocol.Error {
		return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
	}
	switch {
	case errors.As(err, &outside) && outside.Never:
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: that is or holds your home directory, and the thread was started in %s", who, place.Shown(outside.Dir), place.Shown(outside.Thread)),
			"whoever wants agents to work there starts a thread there: uwf run <workflow> -p '<task>' --cwd "+plaintext.Word(outside.Dir))
	case errors.As(err, &outside):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: that is outside the thread's directory %s", who, place.Shown(outside.Dir), place.Shown(outside.Thread)),
			e.allowLine(listed, outside.Dir))
	case errors.As(err, &special):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: %s holds settings, programs or keys", who, place.Shown(special.Dir), place.Shown(special.At)),
			e.allowLine(listed, special.Dir))
	case errors.As(err, &moved):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: the thread was started there, but now that is a link to %s", who, place.Shown(moved.Thread), place.Shown(moved.Dir)),
			e.allowLine(listed, moved.Dir))
	case errors.As(err, &file):
		return fail(protocol.CodeFailed, "%s cannot work in %s: it is not a directory", who, place.Shown(dir))
	case errors.Is(err, fs.ErrNotExist):
		return fail(protocol.CodeFailed, "%s cannot work in %s: there is no such directory", who, place.Shown(dir))
	}
	return fault.Of(fmt.Errorf("%s cannot work in its directory: %w", who, err))
}

// allowLine is the line of the config that would let steps work in a directory.
func (e *Engine) allowLine(listed []string, dir string) string {
	line, _ := json.Marshal(append(slices.Clone(listed), dir)) // texts always encode
	return fmt.Sprintf("to allow steps there and below, add this line to %s: allowLocations: %s", e.Dirs.Config(), line)
}

// located is the path that a location names.
func located(thread, location string) string {
	if filepath.IsAbs(location) {
		return location
	}
	return filepath.Join(thread, location)
}
