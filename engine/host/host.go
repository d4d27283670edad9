// Package host is what a program needs to act through an engine as uwf does: commands of roles are confined,
// what happens is logged, people are notified, and work can go on in the background. The background workers
// are the program itself, started once more: so a main that uses this package calls [Main].
package host

import (
	"context"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/sandbox"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Options for [Open]. The zero value works.
type Options struct {
	Home, Store string             // the directories; "": as the environment names them, see package home
	Events      func(engine.Event) // called with what happens, except [engine.AtRest]; nil: nobody listens
	// Hints are what a person can do about reasons, as outputs have it; nil: nothing. Several goroutines
	// call it.
	Hints func(...protocol.Reason) []string
}

// called marks the context that [Main] hands to a program.
type called struct{}

// Context is a context as [Main] hands it to a program, for a test of which the main begins with it,
// and which starts the program's function itself.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, called{}, true) }

// Open opens an engine as [engine.Open] does, with a sandbox, a log and notices, and notifies of threads
// that a killed process has left at rest. process.Exe is this program, and
// ctx comes from [Main]: without it, what the engine starts of this program would do something else.
func Open(ctx context.Context, process env.Env, o Options) (*engine.Engine, error) {
	if ctx.Value(called{}) == nil {
		return nil, &protocol.Error{Code: protocol.CodeUsage, Message: "the main of this program does not begin with host.Main"}
	}
	e, err := engine.Open(ctx, process, engine.Options{Home: o.Home, Store: o.Store})
	if err != nil {
		return nil, err
	}
	e.Events, e.Reader.Hints = o.Events, o.Hints
	Equip(ctx, e, process)
	return e, nil
}

// Equip is what [Open] adds to an engine. It wraps the engine's Events.
func Equip(ctx context.Context, e *engine.Engine, process env.Env) {
	box := sandbox.New(process, e.Uwf, e.Reader.Dirs, e.Reader.Config, e.Reader.Warn)
	e.Run, e.Hold, e.PutBack, e.Hidden = box.Run, box.Hold, box.PutBack, box.Hidden
	notices, log, show := Notices{e, process}, diary(e, process.Now), e.Events
	e.AtRest = notices.wanted()
	e.Events = func(ev engine.Event) {
		log(ev)
		if ev.Kind == engine.AtRest {
			notices.atRest(ctx, ev)
		} else if show != nil {
			show(ev)
		}
	}
	if e.AtRest {
		e.NotifyAbandoned(ctx)
	}
}
