package agentkittest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// FakeModel is an agent whose model is a test double that records its input.
type FakeModel struct {
	Scenario
	// Agent returns the agent's options. It is called for each step, as each step is a new process.
	Agent func() agentkit.Options
	// Answers sets the model's answer for all further requests: a valid answer that contains word, or an invalid
	// one.
	Answers func(word string, good bool)
	// LastRequest returns everything that the model received with the latest request, including the conversation
	// before it.
	LastRequest func() string
}

// model is a thread with a FakeModel.
type model struct {
	*Thread
	FakeModel
	t *testing.T
}

// KnowsOnlyItsHistory tests that a forked, replayed or poked thread gets nothing from outside its history,
// whatever the agent's sessions have seen since.
func KnowsOnlyItsHistory(t *testing.T, make func(t *testing.T) FakeModel) {
	t.Helper()
	for name, tell := range map[string]func(*model){
		"a fork in the middle": func(m *model) {
			first := m.visits("FIRST")
			m.visits("FUTURE")
			fork := m.at(first)
			fork.visits("BRANCH")
			fork.requireInRequest("FIRST").not("FUTURE")
			m.visits("LATER")
			m.requireInRequest("FIRST", "FUTURE").not("BRANCH")
			fork.visits("TWIG")
			fork.requireInRequest("FIRST", "BRANCH").not("FUTURE", "LATER")
		},
		"a fork of a fork": func(m *model) {
			fork := m.at(m.visits("FIRST"))
			branch := fork.visits("BRANCH")
			fork.visits("FUTURE")
			again := fork.at(branch)
			again.visits("LEAF")
			again.requireInRequest("FIRST", "BRANCH").not("FUTURE")
		},
		"two forks in turn": func(m *model) {
			first := m.visits("FIRST")
			m.at(first).visits("BRANCH")
			m.at(first).visits("ANOTHER")
			m.requireInRequest("FIRST").not("BRANCH")
			m.visits("LATER")
			m.requireInRequest("FIRST").not("BRANCH", "ANOTHER")
		},
		"a replay": func(m *model) {
			start := m.Head
			m.visits("FUTURE")
			fork := m.at(start)
			fork.visits("FIRST")
			fork.not("FUTURE")
		},
		"a poke": func(m *model) {
			m.visits("FIRST")
			m.visits("FUTURE")
			m.pokes("POKED")
			m.requireInRequest("FIRST", "otherwise").not("FUTURE")
			m.visits("LATER")
			m.requireInRequest("FIRST", "POKED").not("FUTURE")
			m.pokes("AGAIN")
			m.requireInRequest("FIRST", "POKED").not("FUTURE", "LATER")
		},
		"a fork after a rejected try": func(m *model) {
			first := m.visits("FIRST")
			m.fails("FUTURE")
			fork := m.at(first)
			fork.visits("BRANCH")
			fork.requireInRequest("FIRST").not("FUTURE")
		},
		"a poke after a rejected try": func(m *model) {
			m.visits("FIRST")
			m.visits("FUTURE")
			m.fails("REJECTED")
			m.pokes("POKED")
			m.requireInRequest("FIRST").not("FUTURE", "REJECTED")
		},
		"a rejected poke": func(m *model) {
			m.visits("FIRST")
			m.visits("SECOND")
			m.answers("FUTURE", false)
			m.poke().Failed("")
			m.visits("THIRD")
			m.requireInRequest("FIRST", "SECOND").not("FUTURE")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := make(t)
			tell(&model{Thread: New(t, m.Scenario), FakeModel: m, t: t})
		})
	}
}

func (m *model) answers(word string, good bool) { m.Answers(word, good) }

// visits runs a step of the role with an answer that contains word.
func (m *model) visits(word string) cas.Hash {
	m.t.Helper()
	m.answers(word, true)
	return m.Run(m.Agent()).Succeeded().Result.StepHash
}

// fails runs a try whose answer is rejected.
func (m *model) fails(word string) {
	m.t.Helper()
	m.answers(word, false)
	m.Run(m.Agent()).Failed("")
}

// pokes repeats the newest step.
func (m *model) pokes(word string) {
	m.t.Helper()
	m.answers(word, true)
	m.poke().Succeeded()
}

func (m *model) poke() *Outcome { return m.Poke(m.Agent(), "Do it otherwise.") }

// at returns a fork that continues from node.
func (m *model) at(node cas.Hash) *model {
	m.t.Helper()
	fork := *m
	fork.Thread = m.ForkAt(node)
	return &fork
}

// requireInRequest requires that the latest request contains all words.
func (m *model) requireInRequest(words ...string) *model {
	m.t.Helper()
	for _, word := range words {
		require.Contains(m.t, m.LastRequest(), word)
	}
	return m
}

// not requires that the latest request contains none of the words.
func (m *model) not(words ...string) {
	m.t.Helper()
	for _, word := range words {
		require.NotContains(m.t, m.LastRequest(), word)
	}
}

// Poke repeats the newest step with another instruction, as `uwf thread retry` does. If the step fails, the
// thread is unchanged.
func (th *Thread) Poke(o agentkit.Options, instruction string) *Outcome {
	th.t.Helper()
	old, own := th.Head, th.scenario.EdgePrompt
	step := node[protocol.Step](th, old)
	before := step.Start
	if step.Prev != nil {
		before = *step.Prev
	}
	th.move(before)
	th.scenario.EdgePrompt = instruction
	got := th.Run(o)
	if th.scenario.EdgePrompt = own; got.Result.StepHash == "" {
		th.move(old)
	}
	return got
}
