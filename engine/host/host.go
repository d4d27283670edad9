// Package host sets up an engine for a program, as uwf does: commands of roles run in a sandbox, events are
// logged, people are notified, and work can continue in the background. A background worker is the same
// program, started again. Therefore the main function of a program that uses this package must call [Main].
package host

import (
	"context"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/sandbox"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Options are the options of [Open]. The zero value is valid.
type Options struct {
	Home, Store string             // directories; "" means as the environment sets them (package home)
	Events      func(engine.Event) // called for each event except [engine.AtRest], if not nil
	// Hints returns hints for a set of reasons, which outputs include. It must be safe for concurrent use. If
	// nil, there are none.
	Hints func(...protocol.Reason) []string
}

// called marks a context created by [Main].
type called struct{}

// Context returns a context like the one that [Main] passes to run. Use it in a test whose TestMain calls
// Main but that calls the program's function directly.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, called{}, true) }

// Open opens an engine as [engine.Open] does, and adds a sandbox, a log and notifications. It also sends
// notifications about threads whose processes were killed. process.Exe must be this program, and ctx must
// come from [Main]: otherwise the engine could not start this program as a worker.
func Open(ctx context.Context, process env.Env, o Options) (*engine.Engine, error) {
	if ctx.Value(called{}) == nil {
		return nil, &protocol.Error{Code: protocol.CodeUsage, Message: "main of this program does not start with " +
			"host.Main"}
	}
	e, err := engine.Open(ctx, process, engine.Options{Home: o.Home, Store: o.Store})
	if err != nil {
		return nil, err
	}
	e.Events, e.Reader.Hints = o.Events, o.Hints
	Equip(ctx, e, process)
	return e, nil
}

// Equip adds to an engine what [Open] adds. It wraps the engine's Events.
func Equip(ctx context.Context, e *engine.Engine, process env.Env) {
	box := sandbox.New(process, e.Uwf, e.Reader.Dirs, e.Reader.Config, e.Reader.Warn)
	e.Run, e.Sandbox, e.PutBack, e.Hidden = box.Run, box.Hold, box.PutBack, box.Hidden
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
