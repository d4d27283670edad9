package workflows

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

var someProblems = []protocol.Problem{
	{File: "flows/a b.yaml", Line: 3, Column: 7, Message: `role "x" is unknown: 100%`, Excerpt: "  role: x", Remedy: "did you mean \"y\"?\nor z"},
	{File: "c,d:e.yaml", Line: 1, Column: 1, Message: "::error::not a command"},
	{File: "gone.yaml", Message: "no place"},
}

// TestSARIF holds the log to what the standard demands of a log with results
// (SARIF 2.1.0, sections 3.13 to 3.30).
func TestSARIF(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, writeSARIF(&out, "v1.2.3", someProblems))
	var log map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &log))
	require.Equal(t, "2.1.0", log["version"])
	require.Len(t, log["runs"], 1)
	run := log["runs"].([]any)[0].(map[string]any)
	require.Contains(t, []any{"utf16CodeUnits", "unicodeCodePoints"}, run["columnKind"])
	driver := run["tool"].(map[string]any)["driver"].(map[string]any)
	require.NotEmpty(t, driver["name"])
	rules := map[any]bool{}
	for _, r := range driver["rules"].([]any) {
		rules[r.(map[string]any)["id"]] = true
	}
	results := run["results"].([]any)
	require.Len(t, results, len(someProblems))
	for i, r := range results {
		r := r.(map[string]any)
		require.True(t, rules[r["ruleId"]], "a rule that the driver lists")
		require.Contains(t, []any{"none", "note", "warning", "error"}, r["level"])
		require.Contains(t, r["message"].(map[string]any)["text"], someProblems[i].Message)
		require.Len(t, r["locations"], 1)
		physical := r["locations"].([]any)[0].(map[string]any)["physicalLocation"].(map[string]any)
		uri, err := url.Parse(physical["artifactLocation"].(map[string]any)["uri"].(string))
		require.NoError(t, err)
		require.Empty(t, uri.Scheme, "relative, so that a scanner finds the file in its checkout")
		region, placed := physical["region"].(map[string]any)
		require.Equal(t, someProblems[i].Line > 0, placed, "a region needs a line from 1")
		if placed {
			require.EqualValues(t, someProblems[i].Line, region["startLine"])
			require.EqualValues(t, someProblems[i].Column, region["startColumn"])
		}
	}
}

func TestSARIFOfNothingIsAnEmptyList(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, writeSARIF(&out, "v1", nil))
	require.Contains(t, out.String(), `"results": []`, "null would mean that the check did not run")
}

func TestSARIFNamesFilesOutsideByURI(t *testing.T) {
	t.Parallel()
	require.Equal(t, "flows/a%20b.yaml", sarifURI("flows/a b.yaml"))
	require.Equal(t, "file:///x/a%23.yaml", sarifURI("/x/a#.yaml"))
	require.Equal(t, "./c:d.yaml", sarifURI("c:d.yaml"), "not a URI of scheme c")
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, writeAnnotations(&out, someProblems))
	require.Equal(t, ""+
		"::error file=flows/a b.yaml,line=3,col=7,title=uwf workflow::role \"x\" is unknown: 100%25%0Adid you mean \"y\"?%0Aor z\n"+
		"::error file=c%2Cd%3Ae.yaml,line=1,col=1,title=uwf workflow::::error::not a command\n"+
		"::error file=gone.yaml,title=uwf workflow::no place\n", out.String())
}
