//go:build agents

package agentstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// relayRoles run one after another; each writes one word.
var relayRoles = []string{"planner", "developer", "reviewer", "tester"}

// relay returns a workflow of these roles.
func relay() string {
	roles, graph := map[string]any{}, map[string]any{
		"$START": map[string]any{"_": map[string]any{"role": relayRoles[0], "prompt": "Begin."}},
	}
	for i, role := range relayRoles {
		roles[role] = map[string]any{
			"description": role, "goal": "Work.", "capabilities": []string{}, "procedure": "Work.", "output": "a word",
			"frontmatter": map[string]any{
				"type": "object", "required": []string{"$status", "word"},
				"properties": map[string]any{"$status": map[string]any{"const": "done"}, "word": map[string]any{"type": "string"}},
			},
		}
		next := map[string]any{"role": "$END"}
		if i+1 < len(relayRoles) {
			next = map[string]any{"role": relayRoles[i+1], "prompt": "Go on from {{{word}}}."}
		}
		graph[role] = map[string]any{"done": next}
	}
	text, _ := json.Marshal(map[string]any{"name": "relay", "description": "four roles", "roles": roles, "graph": graph}) // JSON is valid YAML
	return string(text)
}

// TestSwap runs a thread whose four roles are played by four real programs; a fork continues with the
// programs swapped.
func TestSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "uwf-codex", nil, nil)
	agents, models := map[string]any{}, map[string]*model{}
	for _, p := range []program{claudeCode, codex(), gemini(), opencode()} {
		build(t, "uwf-"+p.name)
		m, url := newModel(t, p.speak)
		models[p.name] = m
		agents[p.name] = agent("uwf-"+p.name, p.args, p.environ(t, url, p.npm.install(t), t.TempDir()))
	}
	// cast assigns a program to each role, and a word to each program.
	cast := func(names ...string) {
		roles := map[string]string{}
		for i, name := range names {
			roles[relayRoles[i]] = name
			models[name].play(reply{text: answer("by-" + name + "-as-" + relayRoles[i])})
		}
		config, err := json.Marshal(map[string]any{
			"defaultAgent": names[0], "agents": agents, "agentOverrides": map[string]any{"relay": roles},
		})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "home", "config.yaml"), config, 0o600))
	}
	// told checks that each role got the word of the previous one, and that no other program was asked.
	told := func(from int, names ...string) {
		for i, name := range names[from:] {
			asked := models[name].asked()
			require.Len(t, asked, 1, name)
			before := relayRoles[max(0, from+i-1)]
			require.True(t, from+i == 0 || strings.Contains(asked[0], "-as-"+before), "%s is told what the %s has done", name, before)
		}
	}

	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "work", "relay.yaml"), []byte(relay()), 0o600))
	first := []string{"claude-code", "codex", "gemini", "opencode"}
	cast(first...)
	var begun, forked struct{ Thread string }
	w.json(&begun, "thread", "start", "relay.yaml", "-p", "A task.")
	w.thread = begun.Thread
	w.mustStep()
	planned := w.last()
	w.mustStep()
	w.mustStep()
	require.Equal(t, "completed", w.mustStep())
	require.Equal(t, "by-opencode-as-tester", w.last().Output["word"])
	told(0, first...)

	w.json(&forked, "thread", "fork", planned.Hash)
	w.thread = forked.Thread
	second := []string{"claude-code", "opencode", "codex", "gemini"}
	cast(second...)
	w.mustStep()
	require.Equal(t, "by-opencode-as-developer", w.last().Output["word"])
	w.mustStep()
	require.Equal(t, "by-codex-as-reviewer", w.last().Output["word"])
	require.Equal(t, "completed", w.mustStep())
	require.Equal(t, "by-gemini-as-tester", w.last().Output["word"])
	told(1, second...)
	require.Empty(t, models["claude-code"].asked(), "the plan is kept")
	report.add(program{name: "all four", version: "-"}, "a role each, forked and swapped", "ran")
}
