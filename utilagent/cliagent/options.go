package cliagent

import (
	"context"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

// Options makes an agent of an adapter.
func Options(a Adapter) agentkit.Options {
	s := &steps{adapter: a}
	return agentkit.Options{
		Name: a.Name, Run: s.run, Continue: s.correct,
		Resumes: !a.Sessions.None, ForksSessions: a.Sessions.Forks && !a.Sessions.None,
		CutsSessions: a.Sessions.Cuts && !a.Sessions.None,
		ParseArgs:    s.parse, Check: s.check, Usage: usage(a),
		Dispatch: bind.Dispatch,
	}
}

// steps keeps the runner of the step in hand: a process makes one.
type steps struct {
	adapter Adapter
	extra   []string
	runner  *runner
}

func (s *steps) run(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	r, err := s.of(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	return r.run()
}

func (s *steps) correct(ctx context.Context, session, message string, req *agentkit.Request) (agentkit.Result, error) {
	r, err := s.of(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	return r.correct(session, message)
}

// of is the runner of a request.
func (s *steps) of(ctx context.Context, req *agentkit.Request) (*runner, error) {
	if s.runner != nil && s.runner.req == req {
		return s.runner, nil
	}
	r, err := newRunner(ctx, s.adapter, s.extra, req)
	if err != nil {
		return nil, err
	}
	s.runner = r
	return r, nil
}
