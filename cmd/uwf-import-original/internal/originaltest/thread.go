package originaltest

import (
	"github.com/united-workforce/uwf/cas"
)

// Workflow stores the original's test workflow: a writer, and a reviewer who can send the work back. In
// $SUSPEND it asks a person.
func (o *Original) Workflow(name string) cas.Hash {
	return o.Put(o.Schema("workflow"), o.workflow(name, "frontmatter"))
}

// LaterWorkflow stores the same workflow in the form of later versions.
func (o *Original) LaterWorkflow(name string) cas.Hash {
	w := o.workflow(name, "frontmatter")
	w["version"] = 1
	return o.Put(o.Schema("workflow-later"), w)
}

// EarlyWorkflow stores a workflow in the form of the first versions, with conditions.
func (o *Original) EarlyWorkflow(name string) cas.Hash {
	role := func() map[string]any {
		return map[string]any{
			"description": "Writes", "identity": "You write.", "prepare": "Read.", "execute": "Write.", "report": "Say so.",
			"meta": string(o.output(name + ".writer")),
		}
	}
	to := func(role string, condition any) map[string]any {
		return map[string]any{"role": role, "condition": condition}
	}
	return o.Put(o.Schema("workflow-early"), map[string]any{
		"name": name, "description": "with conditions", "roles": map[string]any{"writer": role(), "reviewer": role()},
		"conditions": map[string]any{"bad": map[string]any{"description": "not good", "expression": "steps[-1].output.`$status` = 'rejected'"}},
		"graph": map[string]any{
			"$START": []any{to("writer", nil)}, "writer": []any{to("reviewer", nil)},
			"reviewer": []any{to("writer", "bad"), to("$END", nil)},
		},
	})
}

func (o *Original) output(title string) cas.Hash {
	return o.Put(cas.NewKinds(cas.XXH64).MetaHash(), map[string]any{
		"title": title, "type": "object", "required": []any{"$status"},
		"properties": map[string]any{
			"$status": map[string]any{"type": "string", "enum": []any{"done", "rejected", "approved", "unclear"}},
			"note":    map[string]any{"type": "string"},
		},
	})
}

func (o *Original) workflow(name, schemaKey string) map[string]any {
	role := func(who string) map[string]any {
		return map[string]any{
			"description": who + "s", "goal": "You are the " + who + ".", "capabilities": []any{}, "procedure": "Do it.",
			"output": "Set $status.", schemaKey: string(o.output(name + "." + who)),
		}
	}
	to := func(role, prompt string) map[string]any {
		return map[string]any{"role": role, "prompt": prompt, "location": nil}
	}
	return map[string]any{
		"name": name, "description": "A writer and a reviewer",
		"roles": map[string]any{"writer": role("writer"), "reviewer": role("reviewer")},
		"graph": map[string]any{
			"$START":   map[string]any{"_": to("writer", "Write it")},
			"writer":   map[string]any{"done": to("reviewer", "Review it"), "unclear": to("$SUSPEND", "What is meant?")},
			"reviewer": map[string]any{"rejected": to("writer", "Again: {{{note}}}"), "approved": to("$END", "Done")},
		},
	}
}

// Start stores the start of a thread.
func (o *Original) Start(workflow cas.Hash, prompt, cwd string) cas.Hash {
	return o.Put(o.Schema("start"), map[string]any{"workflow": string(workflow), "prompt": prompt, "cwd": cwd})
}

// EarlyStart stores a start in the form of the first versions, without a directory.
func (o *Original) EarlyStart(workflow cas.Hash, prompt string) cas.Hash {
	return o.Put(o.Schema("start-early"), map[string]any{"workflow": string(workflow), "prompt": prompt})
}

// Step is the content of a step. Its detail comes from the mock agent, or from hermes if there is an answer.
type Step struct {
	Role, Status, Note string
	Answer             string
	Early, Later       bool // form of the first, or of later versions
}

// Steps appends steps to a start and returns their hashes.
func (o *Original) Steps(workflowName string, start cas.Hash, steps ...Step) []cas.Hash {
	return o.StepsAfter(workflowName, start, nil, steps...)
}

// StepsAfter appends steps to a chain, which contains the start and its steps.
func (o *Original) StepsAfter(workflowName string, start cas.Hash, chain []cas.Hash, steps ...Step) []cas.Hash {
	var hashes []cas.Hash
	var prev any
	if len(chain) > 0 {
		prev = string(chain[len(chain)-1])
	}
	for i, s := range steps {
		output := map[string]any{"$status": s.Status}
		if s.Note != "" {
			output["note"] = s.Note
		}
		node := map[string]any{
			"start": string(start), "prev": prev, "role": s.Role, "agent": "uwf-mock",
			"output": string(o.Put(o.output(workflowName+"."+s.Role), output)),
			"detail": string(o.detail(i, s)),
		}
		form := "step-early"
		if !s.Early {
			form = "step"
			at := o.tick()
			node["startedAtMs"], node["completedAtMs"], node["cwd"] = at, at+500, "/"
			node["edgePrompt"], node["assembledPrompt"] = "Go on", string(o.Text("The whole prompt of "+s.Role))
		}
		if s.Later {
			form = "step-later"
			node["usage"] = map[string]any{"turns": 1, "inputTokens": 100, "outputTokens": 20, "duration": 1.5}
			node["previousAttempts"] = []any{string(o.Text("a failed attempt"))}
		}
		h := o.Put(o.Schema(form), node)
		hashes, prev = append(hashes, h), string(h)
	}
	return hashes
}

func (o *Original) detail(i int, s Step) cas.Hash {
	if s.Answer == "" {
		return o.Put(o.Schema("mock-detail"), map[string]any{"sessionId": "mock-0", "role": s.Role, "stepIndex": i})
	}
	turn := o.Put(o.Schema("hermes-turn"), map[string]any{
		"index": 0, "role": "assistant", "content": s.Answer, "toolCalls": nil, "reasoning": nil,
	})
	return o.Put(o.Schema("hermes-detail"), map[string]any{
		"sessionId": "20260604_1", "model": "m", "duration": 1200, "turnCount": 1, "turns": []any{string(turn)},
	})
}
