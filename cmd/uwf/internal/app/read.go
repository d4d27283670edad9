package app

import (
	"context"
	"errors"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// defaultQuota is how many characters a reader gets without asking for more.
const defaultQuota = 4000

// QuotaFlag bounds what is read; see [QuotaOf].
func QuotaFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "quota", Usage: "at most `N` characters; the newest text wins", Value: strconv.Itoa(defaultQuota)}
}

// QuotaOf is the value of [QuotaFlag].
func QuotaOf(c *ucli.Context) (int, error) {
	n, err := term.NumberFlag(c, "quota", 1, defaultQuota)
	var coded *protocol.Error
	if errors.As(err, &coded) { // in the original's words
		coded.Message = "invalid --quota: must be a positive integer, got: " + c.String("quota")
	}
	return n, err
}

// Reader opens a thread for reading: as it was when the step in flight began, if
// there is one.
func (a *App) Reader(ctx context.Context, e *engine.Engine, id string, flight *status.Flight) (transcript.Reader, error) {
	head, err := e.Head(ctx, id)
	if err != nil {
		return transcript.Reader{}, err
	}
	if flight != nil {
		head = flight.Head
	}
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return transcript.Reader{}, err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return transcript.Reader{}, err
	}
	return transcript.Reader{
		Store: e.Store, Thread: t, ID: id, Workflow: wf,
		Changes: e.Files().Totals(ctx, head, workspace.MostTotals), Quoting: a.Quoting(),
	}, nil
}

// Quoting is for models if an agent has started this program during a step.
func (a *App) Quoting() transcript.Quoting {
	during := a.Env.Get(protocol.EnvRunDir) + a.Env.Get(protocol.EnvStartedFor)
	return transcript.Quoting(during != "")
}
