package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/wire"
)

// looker queries the remote for the heads of threads, with a single long-running helper.
type looker struct {
	helper wire.Helper
	open   *wire.Client
}

// look implements [slot.Look].
func (l *looker) look(ctx context.Context, thread string) (protocol.Hash, error) {
	if l.open == nil {
		if err := l.dial(ctx); err != nil {
			return "", err
		}
	}
	at, err := l.open.Thread(ctx, thread)
	if errors.Is(err, heads.ErrNoThread) || err == nil && at.Ended != nil {
		return "", nil
	}
	if err != nil {
		l.close()
	}
	return at.Head, err
}

func (l *looker) dial(ctx context.Context) error {
	opened, err := wire.Dial(ctx, l.helper, wire.Options{Hash: cas.XXH3, Program: program})
	if err == nil {
		l.open = opened
	}
	return err
}

func (l *looker) close() {
	if l.open != nil {
		_ = l.open.Close()
	}
	l.open = nil
}

// looker returns a looker for the remote of a worker's home.
func (cmd *command) looker(ctx context.Context, conf config, environ []string) (*looker, error) {
	at, err := cmd.remote(conf)
	if err != nil {
		return nil, err
	}
	address, err := remote.ParseAddress(at.Address, conf.home)
	if err != nil {
		return nil, err
	}
	if at.Trust {
		environ = append(environ[:len(environ):len(environ)], remote.TrustVariable+"=1")
	}
	l := &looker{helper: wire.Helper{Address: address, Environ: environ, Dir: conf.home, Exe: cmd.env.Exe}}
	if err := l.dial(ctx); errors.As(err, new(*wire.NoHelperError)) { // all other errors may be temporary
		return nil, &protocol.Error{Code: protocol.CodeNotFound, Message: "remote " + conf.Remote + ": " + err.Error(),
			Err: err}
	}
	return l, nil
}

// wake signals the workflow of a thread that the thread has moved. A child that waits for a person has no
// running workflow, so its nearest ancestor is signalled instead. It reports whether Temporal was reachable.
func wake(ctx context.Context, temporal client.Client, r flow.Request) bool {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, thread := range append([]string{r.Thread}, r.Above...) {
		err := temporal.SignalWorkflow(ctx, flow.ID(r.Remote, thread), "", flow.Changed, nil)
		if !errors.As(err, new(*serviceerror.NotFound)) {
			return err == nil
		}
	}
	return true
}

// maxAdopted is the maximum number of waiting threads that a worker wakes when it starts.
const maxAdopted = 200

// adopt wakes waiting threads, because the worker that watched them may be dead. A woken thread is stepped at
// once, by the worker that watches it from then on.
func (cmd *command) adopt(ctx context.Context, temporal client.Client, conf config) error {
	select {
	case <-time.After(rand.N(time.Second)): // spread the load, since many workers may start at once
	case <-ctx.Done():
		return nil
	}
	all, err := listed(ctx, temporal, conf.Remote, running, maxAdopted, func(w worked) bool { return w.Status == waiting })
	for _, w := range all {
		wake(ctx, temporal, flow.Request{Remote: conf.Remote, Thread: w.Thread})
	}
	return err
}

const running = "ExecutionStatus = 'Running'"

// listed returns the workflows of a remote's threads that match a query, newest first.
func listed(ctx context.Context, dialled client.Client, remote, query string, limit int,
	wanted func(worked) bool) ([]worked, error) {
	all := []worked{}
	full := "WorkflowType = '" + flow.Name + "'"
	if query != "" {
		full += " AND " + query
	}
	//nolint:gosec // a page
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: full, PageSize: int32(min(limit, defaultLimit))}
	for len(all) < limit {
		page, err := dialled.ListWorkflow(ctx, request)
		if err != nil {
			return all, err
		}
		for _, found := range page.Executions {
			w, ours, err := one(ctx, dialled, remote, found)
			if err != nil {
				return all, err
			}
			if ours && len(all) < limit && wanted(w) {
				all = append(all, w)
			}
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			break
		}
	}
	return all, nil
}
