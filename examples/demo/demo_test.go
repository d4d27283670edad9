package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo begins with a bug, and its check notices if there is none.
func TestProjectBeginsRed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{environ: os.Environ(), out: &out, project: filepath.Join(t.TempDir(), "project"), home: t.TempDir()}
	require.NoError(t, writeProject(d.project))
	require.NoError(t, d.expectTests(t.Context(), red))
	require.ErrorContains(t, d.expectTests(t.Context(), green), "promised: the tests are green")
	require.Contains(t, out.String(), "--- FAIL: TestMedian/not_sorted")
	require.Contains(t, out.String(), "--- FAIL: TestMedian/an_even_number")
}

func TestStepsAreChecked(t *testing.T) {
	t.Parallel()
	steps := func(way ...[2]string) []step {
		var list []step
		for _, w := range way {
			s := step{Role: w[0]}
			s.Output.Status = w[1]
			list = append(list, s)
		}
		return list
	}
	short := steps([2]string{"planner", "ready"}, [2]string{"developer", "done"}, [2]string{"reviewer", "approved"})
	require.Error(t, checkSteps(short, true), "the script rejects once")
	require.NoError(t, checkSteps(short, false), "a real model may be right at once")
	require.Error(t, checkSteps(short[:2], false))
	require.Error(t, checkSteps(nil, false))
	require.NoError(t, checkSteps(append(append(short[:2:2], steps([2]string{"reviewer", "rejected"}, [2]string{"developer", "done"})...), short[2]), true))
}

func TestRealModelComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	m, found, err := realModel([]string{"UWF_DEMO_BASE_URL=https://host/v1", "UWF_DEMO_MODEL=m", "OPENAI_API_KEY=k"})
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, model{baseURL: "https://host/v1", keyVariable: "OPENAI_API_KEY", worker: "m", reviewer: "m"}, m)

	_, found, err = realModel([]string{"OPENAI_API_KEY=k"})
	require.NoError(t, err)
	require.False(t, found)

	_, _, err = realModel([]string{"UWF_DEMO_MODEL=m"})
	require.ErrorContains(t, err, "UWF_DEMO_BASE_URL")
}

// The key itself is not in the config, only the name of its variable.
func TestConfigNamesTheKey(t *testing.T) {
	t.Parallel()
	d := &demo{bin: `/opt/my "bin"`, home: filepath.Join(t.TempDir(), "home"), model: model{baseURL: "http://h/v1", keyVariable: "UWF_DEMO_API_KEY", worker: "w: 1"}}
	require.NoError(t, d.writeConfig())
	b, err := os.ReadFile(filepath.Join(d.home, "config.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(b), "apiKeyEnv: UWF_DEMO_API_KEY")
	require.Contains(t, string(b), `name: "w: 1"`)
	require.Contains(t, string(b), `\"bin\"`)
}
