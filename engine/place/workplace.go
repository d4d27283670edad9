package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Chooser finds out where threads and their roles work, by the config of a home.
type Chooser struct {
	Env    env.Env
	Dirs   home.Dirs
	Config func(context.Context) (protocol.Config, error)
}

// Workplace is the directory in which a role of a thread would work: where a
// location leads from the directory that the thread was started in. It has no
// symbolic links. What may not be is refused here, before anybody is paid. Errors
// are *protocol.Error.
func (c Chooser) Workplace(ctx context.Context, role, started, location string) (string, error) {
	rules, listed, err := c.rules(ctx, started)
	if err != nil {
		return "", fault.Of(err)
	}
	dir, err := rules.Resolve(location)
	if err != nil {
		return "", c.explain(role, located(rules.Thread, location), listed, err)
	}
	return dir, nil
}

// rules are those of a thread that was started in a directory, with the
// directories that the config lists as it lists them.
func (c Chooser) rules(ctx context.Context, started string) (Rules, []string, error) {
	config, err := c.Config(ctx)
	if err != nil {
		return Rules{}, nil, err
	}
	if started == "" { // the original's first versions had none
		if started, err = Real(c.Env.Dir); err != nil {
			return Rules{}, nil, err
		}
	}
	rules := Rules{Thread: started, User: home.User(c.Env)}
	for _, dir := range config.AllowLocations {
		dir, err := home.Absolute(c.Env, dir)
		if err != nil {
			return rules, nil, fmt.Errorf("allowLocations: %w", err)
		}
		rules.Allowed = append(rules.Allowed, dir)
	}
	return rules, config.AllowLocations, nil
}

// explain says why a role, or with "" a whole thread, cannot work in a
// directory, and what would allow it. Where a link leads is said only if the thread may not go there.
func (c Chooser) explain(role, dir string, listed []string, err error) error {
	var (
		outside *OutsideError
		moved   *MovedError
		file    *NoDirError
		special *SpecialError
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
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: that is or holds your home directory, and the thread was started in %s", who, Shown(outside.Dir), Shown(outside.Thread)),
			"whoever wants agents to work there starts a thread there: uwf run <workflow> -p '<task>' --cwd "+plaintext.Word(outside.Dir))
	case errors.As(err, &outside):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: that is outside the thread's directory %s", who, Shown(outside.Dir), Shown(outside.Thread)),
			c.allowLine(listed, outside.Dir))
	case errors.As(err, &special):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: %s holds settings, programs or keys", who, Shown(special.Dir), Shown(special.At)),
			c.allowLine(listed, special.Dir))
	case errors.As(err, &moved):
		return fault.Hinted(fail(protocol.CodeFailed, "%s may not work in %s: the thread was started there, but now that is a link to %s", who, Shown(moved.Thread), Shown(moved.Dir)),
			c.allowLine(listed, moved.Dir))
	case errors.As(err, &file):
		return fail(protocol.CodeFailed, "%s cannot work in %s: it is not a directory", who, Shown(dir))
	case errors.Is(err, fs.ErrNotExist):
		return fail(protocol.CodeFailed, "%s cannot work in %s: there is no such directory", who, Shown(dir))
	}
	return fault.Of(fmt.Errorf("%s cannot work in its directory: %w", who, err))
}

// allowLine is the line of the config that would let steps work in a directory.
func (c Chooser) allowLine(listed []string, dir string) string {
	line, _ := json.Marshal(append(slices.Clone(listed), dir)) // texts always encode
	return fmt.Sprintf("to allow steps there and below, add this line to %s: allowLocations: %s", c.Dirs.Config(), line)
}

// located is the path that a location names.
func located(thread, location string) string {
	if filepath.IsAbs(location) {
		return location
	}
	return filepath.Join(thread, location)
}
