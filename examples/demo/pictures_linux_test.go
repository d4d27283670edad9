//go:build instruments

package main

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded runs solve-issue on a terminal, as `make pictures` does, and compares the recordings in README and
// docs with the current output. Numbers, ids and overwritten lines differ between runs.
func recorded(s *stage) (thread string) {
	t := s.t
	require.NoError(t, s.goBuild(t.Context(), s.bin, "./examples/demo/record"))
	_, err := s.uwf(t.Context(), "workflow", "put", "examples/solve-issue.yaml")
	require.NoError(t, err)
	// As in the demo, the result goes elsewhere.
	cmd := exec.CommandContext(t.Context(), s.program("record"), "-columns", "200", "--", "/bin/sh", "-c", `exec "$0" "$@" >/dev/null`,
		s.program("uwf"), "run", "solve-issue", "-p", task, "--cwd", s.project)
	cmd.Dir, cmd.Env = s.repo, s.childEnv()
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	began := regexp.MustCompile(`(?m)^thread (\w{26})$`).FindSubmatch(printed)
	require.NotNil(t, began, "%s", printed)

	today, run := settled(string(printed)), picture(t, "../../docs/images/run.svg")
	for _, line := range today {
		require.Contains(t, run, line, "run.svg is of another version: make pictures")
	}
	// The demo prints its own lines between the commands.
	own := regexp.MustCompile(`^(\$ |== |ok |thread ID: )`)
	for name, lines := range map[string][]string{"run.svg": run, "live.svg": picture(t, "../../docs/images/live.svg")} {
		for _, line := range lines {
			if !own.MatchString(line) {
				require.Contains(t, today, line, "%s is of another version: make pictures", name)
			}
		}
	}
	return string(began[1])
}

// picture returns the text of an SVG.
func picture(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var text strings.Builder
	for _, m := range regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`).FindAllStringSubmatch(string(data), -1) {
		text.WriteString(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")) + "\n")
	}
	return settled(strings.ReplaceAll(text.String(), "\u00a0", " "))
}

// settled returns the final lines of a session, without what differs between runs.
func settled(text string) []string {
	lives := regexp.MustCompile(`^  [\w-]+ · `)
	id := regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)
	took := regexp.MustCompile(`, \d+(\.\d+)? s$`)
	number := regexp.MustCompile(`\d+(\.\d+)?(ms|s|m\d+s|k)?`)
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n\t")
		if line == "" || lives.MatchString(line) || strings.HasPrefix(line, "uwf: warning: commands run as root") {
			continue
		}
		line = number.ReplaceAllString(took.ReplaceAllString(id.ReplaceAllString(line, "ID"), ""), "N")
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
