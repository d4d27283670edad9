package builtin

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// Our agents copy a conversation before they continue it, so that forks, replays and pokes get only their own
// history.
func TestOursKnowOnlyTheirPast(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func() agentkit.Options{
		"builtin": func() agentkit.Options { return Options() },
		"react":   func() agentkit.Options { return ReactOptions() },
		"llm":     LLMOptions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agentkittest.KnowsOnlyItsHistory(t, func(t *testing.T) agentkittest.FakeModel {
				e := serve(t, say("x"))
				return agentkittest.FakeModel{
					Scenario: e.scenario(""), Agent: options,
					Answers: func(word string, good bool) {
						answer := say("---\n$status: done\nsummary: " + word + "\n---\n")
						switch status := map[bool]string{true: "done", false: "perfect"}[good]; {
						case name == "react":
							answer = call("resolve", `{"$status":"`+status+`","summary":"`+word+`"}`)
						case !good:
							answer = say(word)
						}
						e.saysFromNowOn(answer)
					},
					LastRequest: e.newest,
				}
			})
		})
	}
}

// saysFromNowOn sets the reply to all further requests.
func (e *endpoint) saysFromNowOn(r reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = make([]reply, len(e.asked)+1)
	e.replies[len(e.asked)] = r
}

// newest returns the latest request.
func (e *endpoint) newest() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}
