//go:build agents

package agentstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSwap is one thread whose roles are played by different real programs; a fork
// of it goes on with the roles swapped.
func TestSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "uwf-codex", nil, nil).begin(t)
	build(t, "uwf-gemini", "uwf-opencode")
	agents, models := map[string]any{}, map[string]*model{}
	for _, p := range []program{codex(), gemini(), opencode()} {
		m, url := newModel(t, p.speak)
		models[p.name] = m
		agents[p.name] = map[string]any{
			"command": "uwf-" + p.name, "args": p.args, "env": p.environ(t, url, p.npm.install(t), t.TempDir()), "timeout": "4m",
		}
	}
	cast := func(writer, critic string) {
		config, err := json.Marshal(map[string]any{
			"defaultAgent": writer, "agents": agents,
			"agentOverrides": map[string]any{"talk": map[string]string{"writer": writer, "critic": critic}},
		})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "home", "config.yaml"), config, 0o600))
	}

	cast("codex", "gemini")
	models["codex"].play(reply{text: answer("moon")})
	models["gemini"].play(reply{text: "---\n$status: bad\nwhy: too pale\n---\n"})
	w.mustStep()
	first := w.last()
	w.mustStep()
	require.Equal(t, "too pale", w.last().Output["why"])

	var forked struct{ Thread string }
	w.json(&forked, "thread", "fork", first.Hash)
	w.thread = forked.Thread
	cast("opencode", "codex")
	models["codex"].play(reply{text: "---\n$status: bad\nwhy: too far\n---\n"})
	models["opencode"].play(reply{text: answer("rain")})
	w.mustStep()
	require.Equal(t, "too far", w.last().Output["why"])
	w.mustStep()
	require.Equal(t, "rain", w.last().Output["word"])
	asked := models["opencode"].asked()
	require.Len(t, asked, 1)
	require.Contains(t, asked[0], "too far")
	require.Contains(t, asked[0], "moon", "who plays the writer now is told what the writer did")
	report.add(program{name: "all three", version: "-"}, "forked, with the roles swapped", "ran")
}
