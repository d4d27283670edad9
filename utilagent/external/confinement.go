package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/worktree"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// confinement is how a program is held back. We are not: we write the store.
type confinement struct {
	exe   string // of ours, which binds itself and becomes the program
	rules confine.Rules
	env   []string // of the program: where its temporary files go
	close func() error
}

// confined makes the confinement of the step's program; nil: it is not confined.
func (r *runner) confined() (*confinement, error) {
	setting := protocol.Confining(r.confine, string(r.permission))
	if setting == protocol.ConfineOff {
		return nil, nil
	}
	if why := r.unconfinable(); why != "" {
		if setting == protocol.ConfineRequired {
			return nil, &Error{
				Program: r.adapter.Program, Kind: Denied, Text: r.adapter.Program + " must be confined, and cannot be: " + why,
				Hint: "use a Linux with Landlock; or uwf config set agents." + r.req.Alias + ".confine auto",
			}
		}
		fmt.Fprintf(r.req.Env.Stderr, "warning: %s is not confined: %s\n", r.adapter.Program, why)
		return nil, nil
	}
	tmp, err := os.MkdirTemp("", "uwf-"+r.adapter.Name+"-tmp-")
	if err != nil {
		return nil, fmt.Errorf("a directory for temporary files: %w", err)
	}
	c := &confinement{exe: r.req.Env.Exe, close: func() error { return os.RemoveAll(tmp) }}
	c.env = []string{"TMPDIR=" + tmp, "TMP=" + tmp, "TEMP=" + tmp, "CLAUDE_CODE_TMPDIR=" + tmp}
	c.rules, err = r.rules(tmp)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// unconfinable says why nothing can be confined here; "": it can.
func (r *runner) unconfinable() string {
	if confine.Level() == 0 {
		return strings.TrimPrefix(confine.Describe(), "none: ")
	}
	if r.req.Env.Exe == "" {
		return "where our own program is, is not known"
	}
	return ""
}

// rules say what the program may write to: the workspace, and what it cannot work
// without.
func (r *runner) rules(tmp string) (confine.Rules, error) {
	env := r.req.Env
	dirs, files, err := own(append([]string{r.adapter.Program}, r.words...), env.Get)
	if err != nil {
		return confine.Rules{}, fmt.Errorf("where %s keeps its own files: %w", r.adapter.Program, err)
	}
	dirs = append(dirs, r.cwd, tmp, "/dev/shm")
	dirs = append(dirs, tools.CacheDirs(env.Environ)...)
	if repository, ok := worktree.Link(r.cwd); ok {
		dirs = append(dirs, repository) // without it nothing could be committed
	}
	for _, path := range r.allowWrite {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(env.Get("HOME"), rest)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil: // what is not there cannot be allowed
		case info.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	return confine.Rules{
		Dirs: dirs, Files: append(files, "/dev/ptmx"), Profile: confine.Program,
		Hidden: r.hidden(), Readable: []string{r.runDir}, // a long prompt lies there
	}, nil
}

// hidden are the home of uwf and its store, with keys, sessions and what other
// threads said: no program needs them.
func (r *runner) hidden() (dirs []string) {
	for _, dir := range []string{r.req.Dirs.Home, r.req.Dirs.Store} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// wrap makes a command that becomes c once it is bound.
func (c *confinement) wrap(cmd proc.Command) (proc.Command, error) {
	if c == nil {
		return cmd, nil
	}
	cmd.Env = append(cmd.Env, c.env...)
	return confine.Command(c.exe, c.rules, cmd)
}
