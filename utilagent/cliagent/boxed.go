package cliagent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/cliagent/places"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// boxing is how a program runs in namespaces. Of its own directories it changes copies that are the
// thread's.
type boxing struct {
	program string // uwf-box
	request box.Request
	layers  places.Layers
	instead func(why error) error // makes the confinement one without namespaces
	own     []string              // what would be granted then; see [runner.grant]

	mu   sync.Mutex
	said []string // of what was done at the ends of processes
}

// findBox finds uwf-box, if namespaces can be had. unboxed is why they cannot, if that is to be told.
func (r *runner) findBox(setting string) (unboxed, err error) {
	found := box.Find(r.env.Exe)
	if found == "" {
		unboxed = errors.New(box.Program + " is not installed")
	} else if unboxed = box.Probe(found); unboxed == nil {
		r.boxProgram = found
		return nil, nil
	}
	if err := r.mustBox(setting, unboxed); err != nil {
		return nil, err
	}
	if found == "" {
		return nil, nil // uwf doctor says so
	}
	return unboxed, nil
}

// mustBox is the error for a program that must have namespaces and cannot; nil: it need not. Nothing else
// limits a network.
func (r *runner) mustBox(setting string, why error) error {
	if limited := !r.sandbox.Network.All(); limited {
		return &Error{
			Program: r.adapter.Program, Kind: errorkind.Denied, Text: fmt.Sprintf("%s cannot be run with the network %s: %v", r.adapter.Program, r.sandbox.Network, why),
			Hint: "uwf config set " + r.key("sandbox.network") + " all",
		}
	}
	if setting != protocol.SandboxRequired {
		return nil
	}
	return &Error{
		Program: r.adapter.Program, Kind: errorkind.Denied, Text: fmt.Sprintf("%s must run in namespaces, and cannot: %v", r.adapter.Program, why),
		Hint: "uwf doctor says what is missing; uwf config set " + r.key("sandbox.mode") + " landlock does with less",
	}
}

// boxed has namespaces hold the program.
func (r *runner) boxed(c *confinement, tmp string, caches []string) error {
	env, dirs := r.env, r.around.Dirs
	told, err := box.Recover(r.ctx, dirs.Box(), env.Now)
	for _, text := range told {
		r.req.Warn("a program whose agent was killed %s", text)
	}
	r.report(err) // the next one tries again
	kept, state := filepath.Join(tmp, "layers"), filepath.Join(tmp, "own")
	if len(caches) > 0 {
		state = caches[0] + ".own"
	}
	if agent := protocol.AgentName(r.adapter.Name); r.req.Thread != "" {
		kept = filepath.Join(dirs.Agents(r.req.Thread), agent)
		if of, ok := r.shelf.get(r.req.SessionID); ok && of.Thread != "" {
			r.report(places.Copy(filepath.Join(dirs.Agents(of.Thread), agent), kept)) // else its session is not found
		}
	}
	layers, err := places.Over(r.driven(), r.cwd, filepath.Join(tmp, "box"), state, kept, env.Get)
	if err != nil {
		return fmt.Errorf("where %s keeps its own files: %w", r.adapter.Program, err)
	}
	r.report(layers.GiveBack([]string{r.req.SessionID})) // what a killed program has left
	r.keep(layers.Kept)
	c.off = r.offLimits(layers.Finds...)
	c.env = append(c.env, layers.Env...)
	c.box = &boxing{program: r.boxProgram, layers: layers, request: box.Request{
		Workspace: r.cwd, Git: r.repository(), Home: realDir(env.Get("HOME")), Off: c.off, Readable: real([]string{r.runDir}),
		Writable: slices.Concat(real(layers.Dirs), real(caches), real([]string{tmp})), Temporary: realDir(tmp), State: dirs.Box(),
		Environ: env.Environ, Now: env.Now, Nest: r.sandbox.Nests(true), Network: r.sandbox.Network, Finds: layers.Finds, Mounts: layers.Mounts,
		ReadOnly: r.permission == Readonly && config.HeedsPermission(protocol.AgentName(r.adapter.Name)),
	}}
	r.held = "confined by: namespaces, " + confine.Describe()
	before, b := c.close, c.box
	b.instead = func(why error) error {
		if err := r.mustBox(r.sandbox.Mode, why); err != nil {
			return err
		}
		if unable := r.unconfinable(); unable != "" {
			return fmt.Errorf("%s has no namespaces (%w), and nothing else holds it: %s", r.adapter.Program, why, unable)
		}
		r.held = "confined by: " + confine.Describe() + confine.Open(false)
		r.req.Warn("%s runs without namespaces (%v), held by %s%s", r.adapter.Program, why, confine.Describe(), confine.Open(false))
		c.box = nil
		if err := r.bound(c, tmp, caches); err != nil {
			return err
		}
		return r.grant(b.own)
	}
	c.close = func() error {
		for _, text := range b.said {
			r.req.Warn("%s %s", r.adapter.Program, text)
		}
		return errors.Join(layers.GiveBack(r.used), before())
	}
	return nil
}

// wrap makes a command that runs cmd in namespaces; see [confinement.wrap].
func (b *boxing) wrap(c *confinement, cmd proc.Command) (held proc.Command, done func() error, err error) {
	done = func() error { return nil }
	inside := cmd
	inside.Env = append(slices.Clip(cmd.Env), c.env...)
	request := b.request
	request.Finds = append(slices.Clip(request.Finds), box.ProgramFiles(cmd.Path, request.Workspace, inside.Env)...)
	held, run, err := request.Prepare(b.program, inside)
	if errors.Is(err, box.ErrNotHere) {
		if err := b.instead(err); err != nil {
			return cmd, done, err
		}
		held, err = c.bind(cmd)
		return held, done, err
	}
	if err != nil {
		return cmd, done, err
	}
	lowered := false
	held.Box.Else = func(why *proc.BoxError) (proc.Command, error) {
		lowered = true
		if err := b.instead(why); err != nil {
			return cmd, err
		}
		return c.bind(cmd)
	}
	return held, func() error {
		if lowered {
			return run.Cancel()
		}
		said, err := run.End(context.Background()) // also if the step was stopped
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, said...)
		return err
	}, nil
}

// uses notes a session that the program has used, for its files to be given back.
func (r *runner) uses(session string) {
	if !slices.Contains(r.used, session) {
		r.used = append(r.used, session)
	}
}

// keep makes variables of the program ours, too: we look into what it has apart.
func (r *runner) keep(entries []string) {
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		r.env = r.env.With(name, value)
	}
}
