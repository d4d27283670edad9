package agentkit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// program is an agent that remembers each conversation as a list of messages. A mark is a number of messages.
type program struct {
	agentkit.Options
	batch  map[string][]string
	ids    int
	word   string
	good   bool
	heard  string
	silent bool // it never calls Began
}

func (p *program) run(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
	id := req.SessionID
	if id == "" || req.Fork || p.CopiesSessions && !req.Interrupted {
		p.ids++
		id = fmt.Sprintf("session-%d", p.ids)
		p.batch[id] = append([]string(nil), p.batch[req.SessionID]...)
	}
	if req.Cut != "" {
		var n int
		fmt.Sscan(req.Cut, &n)
		p.batch[id] = p.batch[id][:n]
	}
	if !p.silent {
		if err := req.RecordSession(id); err != nil {
			return agentkit.Result{}, err
		}
	}
	return p.say(id, req.Prompt), nil
}

func (p *program) say(id, message string) agentkit.Result {
	answer := "---\n$status: done\nsummary: " + p.word + "\n---\n"
	if !p.good {
		answer = p.word
	}
	p.batch[id] = append(p.batch[id], message)
	p.heard = strings.Join(p.batch[id], "\n\n")
	p.batch[id] = append(p.batch[id], answer)
	res := agentkit.Result{Output: answer, SessionID: id}
	if p.CutsSessions {
		res.SessionMark = fmt.Sprint(len(p.batch[id]))
	}
	return res
}

// TestAnAgentKnowsOnlyItsPast applies to every agent, whatever its session support.
func TestAnAgentKnowsOnlyItsPast(t *testing.T) {
	t.Parallel()
	for name, can := range map[string]agentkit.Options{
		"remembers nothing": {},
		"goes on":           {Resumes: true},
		"forks":             {Resumes: true, ForksSessions: true},
		"cuts":              {Resumes: true, ForksSessions: true, CutsSessions: true},
		"copies":            {Resumes: true, CopiesSessions: true},
	} {
		for kind, silent := range map[string]bool{"": false, " in silence": true} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				agentkittest.KnowsOnlyItsHistory(t, func(*testing.T) agentkittest.FakeModel {
					p := &program{Options: can, batch: map[string][]string{}, silent: silent}
					p.Name, p.Run = "program", p.run
					if can.Resumes {
						p.Continue = func(_ context.Context, id, message string, _ *agentkit.Request) (agentkit.Result, error) {
							return p.say(id, message), nil
						}
					}
					return agentkittest.FakeModel{
						Agent:       func() agentkit.Options { return p.Options },
						Answers:     func(word string, good bool) { p.word, p.good = word, good },
						LastRequest: func() string { return p.heard },
					}
				})
			})
		}
	}
}
