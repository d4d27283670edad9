package casting

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// Unstartable explains why the program of an agent cannot be started, and what to
// do about it. One on the command line that does not exist is the caller's
// mistake, one in the config the config's.
func (r Caster) Unstartable(ctx context.Context, cmd Command, missing *agentproc.NotFoundError) *protocol.Error {
	err := &protocol.Error{Code: protocol.CodeAgent, Message: missing.Error(), Err: missing}
	program := cmd.Argv[0]
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return fault.Hinted(err, "to work elsewhere: cd to your own repository, or --cwd DIR")
	case errors.Is(missing, syscall.EMFILE): // the command line knows what to do
		return err
	case errors.Is(missing, syscall.EAGAIN):
		return fault.Hinted(err, "this is the limit of a user's processes and threads: ulimit -u raises it, if the system allows that")
	case errors.Is(missing, syscall.ENOEXEC):
		return fault.Hinted(err, fmt.Sprintf("a script begins with a line such as #!/bin/sh; or name its interpreter: sh %s", plaintext.Word(program)))
	case errors.Is(missing, fs.ErrPermission) && filepath.IsAbs(program):
		return fault.Hinted(err, "chmod +x "+plaintext.Word(cmd.Written[0]))
	case cmd.Alias != "":
		return fault.Hinted(err, fmt.Sprintf("install it, or set agents.%s.command in %s", cmd.Alias, r.Dirs.Config()))
	case !missing.Absent():
		return fault.Hinted(err, "--agent <alias or command>")
	}
	err.Code = protocol.CodeNotFound
	typed := cmd.Written[0]
	if filepath.Base(typed) != typed {
		err.Message = fmt.Sprintf("there is no agent %q: there is no such file", typed)
		return fault.Hinted(err, r.nearPrograms(cmd)...)
	}
	err.Message = fmt.Sprintf("there is no agent %q: it is neither an alias in the config nor a program", typed)
	return fault.Hinted(fault.Hinted(err, r.nearAgents(ctx, typed)...), "put it on PATH, or give its path: --agent "+plaintext.Word("./"+typed))
}

// nobody is the error for a role without an agent.
func (r Caster) nobody(c protocol.Config, role string) *protocol.Error {
	why := "has no defaultAgent"
	if _, err := os.Lstat(r.Dirs.Config()); errors.Is(err, fs.ErrNotExist) {
		why = "does not exist"
	}
	err := fault.New(protocol.CodeInvalid, "no agent is configured for role %q: %s %s", role, r.Dirs.Config(), why)
	if aliases := slices.Sorted(maps.Keys(c.Agents)); len(aliases) > 0 {
		err = fault.Hinted(err, "uwf config set defaultAgent "+plaintext.Word(aliases[0]))
	} else {
		err = fault.Hinted(err, "uwf setup")
	}
	return fault.Hinted(err, "or name one for this step: --agent <alias or command>")
}
