package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/prosetest"
)

// existing is a handwritten config.
const existing = `# mine
providers:
  openai: { baseUrl: "https://example.test/v1", apiKeyEnv: MY_KEY } # the company's
models:
  fast: { provider: openai, name: small } # cheap
defaultModel: fast
agents:
  builtin: { command: uwf-builtin, args: [--x] }
defaultAgent: builtin
`

func newSetup(t *testing.T, environ ...string) *Setup {
	t.Helper()
	dir := t.TempDir()
	return &Setup{
		Env: env.Env{Environ: environ, Dir: dir}, Dirs: home.Dirs{Home: dir, Store: filepath.Join(dir, "cas")},
		Installed: []string{"uwf-builtin", "uwf-mock"}, Confined: true,
		Players: func(context.Context) []Player {
			return []Player{{Name: "claude-code", Title: "Claude Code 2.1"}, {Name: "codex", Title: "Codex", Problem: "nobody is logged in to codex", Do: "codex login"}, {Name: "builtin", Title: "own"}}
		},
		Models: func(_ context.Context, e config.Endpoint) ([]string, error) {
			if e.APIKey == "sk-wrong-key" {
				return nil, errors.New("401")
			}
			return []string{"big", "small", "text-embedding-3"}, nil
		},
	}
}

// Requested settings are applied; everything else stays, including comments.
func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  string
		answers Answers
		environ []string
		has     []string // lines that must be present
		lost    []string // old lines that must be gone
		fails   bool
	}{
		"a new home": {"", Answers{Provider: "ollama", Model: "llama", Agent: "uwf-builtin"}, nil,
			[]string{`  ollama: { baseUrl: "http://localhost:11434/v1" }`, "  default: {name: llama, provider: ollama}", "defaultModel: default", "  builtin: {command: uwf-builtin}", "defaultAgent: builtin"}, nil, false},
		"a key from the environment": {"", Answers{Provider: "OpenAI", Model: "m"}, []string{"OPENAI_API_KEY=sk-1234567890"},
			[]string{`  openai: { apiKeyEnv: OPENAI_API_KEY, baseUrl: "https://api.openai.com/v1" }`}, nil, false},
		"only an agent":           {existing, Answers{Agent: "mock"}, nil, []string{"  mock: {command: uwf-mock}", "defaultAgent: mock"}, []string{"defaultAgent: builtin"}, false},
		"an agent that is there":  {existing, Answers{Agent: "builtin"}, nil, nil, nil, false},
		"only a model":            {existing, Answers{Model: "large"}, nil, []string{"  large: {name: large, provider: openai}", "defaultModel: large"}, []string{"defaultModel: fast"}, false},
		"the model that is there": {existing, Answers{Provider: "openai", Model: "small"}, nil, nil, nil, false},
		"an alias of another":     {strings.Replace(existing, "defaultModel", "  llama: { provider: openai, name: x }\ndefaultModel", 1), Answers{Provider: "ollama", Model: "llama"}, nil, []string{"  llama-2: {name: llama, provider: ollama}", "defaultModel: llama-2"}, []string{"defaultModel: fast"}, false},
		"another provider": {existing, Answers{Provider: "ollama", Model: "llama"}, nil,
			[]string{`  ollama: {baseUrl: "http://localhost:11434/v1"}`, "  llama: {name: llama, provider: ollama}", "defaultModel: llama"}, []string{"defaultModel: fast"}, false},
		"another address": {existing, Answers{Provider: "openai", BaseURL: "https://other.test/v1"}, nil,
			[]string{`  openai: {baseUrl: "https://other.test/v1", apiKeyEnv: MY_KEY} # the company's`}, []string{`  openai: { baseUrl: "https://example.test/v1", apiKeyEnv: MY_KEY } # the company's`}, false},
		"a key of its own": {existing, Answers{Provider: "openai", APIKey: "sk-1234567890"}, nil,
			[]string{`  openai: {apiKey: sk-1234567890, baseUrl: "https://example.test/v1"} # the company's`}, []string{`  openai: { baseUrl: "https://example.test/v1", apiKeyEnv: MY_KEY } # the company's`}, false},
		"commands": {existing, Answers{Commands: "go,git"}, nil, []string{"builtin: {allowCommands: [go, git]}"}, nil, false},
		"no commands for a program": {"agents: { claude-code: { command: uwf-claude-code } }\ndefaultAgent: claude-code\n", Answers{Commands: "none"}, nil,
			[]string{"agents: {claude-code: {command: uwf-claude-code, permission: edits}}"}, []string{"agents: { claude-code: { command: uwf-claude-code } }"}, false},
		"all commands again": {"agents: {claude-code: {command: uwf-claude-code, permission: edits}}\n", Answers{Commands: "all"}, nil,
			[]string{"agents: {claude-code: {command: uwf-claude-code, permission: full}}"}, []string{"agents: {claude-code: {command: uwf-claude-code, permission: edits}}"}, false},
		"two agents": {"", Answers{Agent: "uwf-codex", More: "builtin", Commands: "none"}, nil,
			[]string{"  codex: { command: uwf-codex, permission: edits }", "defaultAgent: codex", "builtin: {allowCommands: []}"}, nil, false},
		"no programs":              {existing, Answers{Commands: "rm -rf /"}, nil, nil, nil, true},
		"no provider":              {"", Answers{Model: "m"}, nil, nil, nil, true},
		"no address":               {"", Answers{Provider: "opnai", Model: "m"}, nil, nil, nil, true},
		"no key":                   {"", Answers{Provider: "openai", Model: "m"}, nil, nil, nil, true},
		"no model":                 {"", Answers{Provider: "ollama"}, nil, nil, nil, true},
		"a model of somebody else": {existing, Answers{Provider: "ollama"}, nil, nil, nil, true},
		"an address that is none":  {"", Answers{Provider: "x", BaseURL: "nonsense", Model: "m"}, nil, nil, nil, true},
		"what was begun": {"providers: { openai: { apiKey: sk-1234567890 } }\n", Answers{Provider: "openai", Model: "m"}, nil,
			[]string{"defaultModel: default"}, []string{"providers: { openai: { apiKey: sk-1234567890 } }"}, false},
		"a broken config": {"defaultAgnt: x\n", Answers{Agent: "mock"}, nil, nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, c.environ...)
			text, err := s.Text([]byte(c.before), c.answers)
			if c.fails {
				prosetest.Error(t, err)
				return
			}
			require.NoError(t, err)
			_, err = config.Parse(text, "config.yaml", s.Env)
			require.NoError(t, err)
			lines := strings.Split(string(text), "\n")
			for _, line := range c.has {
				require.Contains(t, lines, line)
			}
			for line := range strings.Lines(c.before) {
				line = strings.TrimSuffix(line, "\n")
				if !contains(c.lost, line) {
					require.Contains(t, lines, line)
				}
			}
		})
	}
}

func contains(lines []string, line string) bool {
	for _, l := range lines {
		if l == line {
			return true
		}
	}
	return false
}

// scripted answers questions in turn and records them.
type scripted struct {
	answers []string
	asked   []string
}

func (s *scripted) Line(_ context.Context, question string) (string, error) {
	s.asked = append(s.asked, question)
	if len(s.answers) == 0 {
		return "", ErrNoMore
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer, nil
}

func (s *scripted) Secret(ctx context.Context, question string) (string, error) {
	return s.Line(ctx, "secret: "+question)
}

func TestDialog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  string
		answers []string
		environ []string
		want    Answers
	}{
		"a coding agent":              {"", []string{"", ""}, nil, Answers{Agent: "claude-code", Commands: "all"}},
		"a coding agent, no commands": {"", []string{"1", "go", "none"}, nil, Answers{Agent: "claude-code", Commands: "none"}},
		"nobody is logged in":         {"", []string{"codex", "n", "2", "y", ""}, nil, Answers{Agent: "codex", Commands: "all"}},
		"no such number":              {"", []string{"7", "claud-code", "1", ""}, nil, Answers{Agent: "claude-code", Commands: "all"}},
		"an agent with a typo":        {"", []string{"claud-code", "1", ""}, nil, Answers{Agent: "claude-code", Commands: "all"}},
		"both":                        {"", []string{"1,3", "ollama", "big", "go, git"}, nil, Answers{Agent: "claude-code", More: "builtin", Provider: "ollama", Model: "big", Commands: "go, git"}},
		"by number":                   {"", []string{"3", "1", "sk-12345678", "2", ""}, nil, Answers{Provider: "openai", APIKey: "sk-12345678", Model: "small", Agent: "builtin", Commands: "all"}},
		"by address":                  {"", []string{"builtin", "http://x.test/v1", "", "", "big", ""}, nil, Answers{Provider: "custom", BaseURL: "http://x.test/v1", Model: "big", Agent: "builtin", Commands: "all"}},
		"a typo":                      {"", []string{"3", "opnai", "ollama", "big", ""}, nil, Answers{Provider: "ollama", Model: "big", Agent: "builtin", Commands: "all"}},
		"a provider that is none":     {"", []string{"3", "77", "ollama", "big", ""}, nil, Answers{Provider: "ollama", Model: "big", Agent: "builtin", Commands: "all"}},
		"a model that is not listed":  {"", []string{"3", "ollama", "bgi", "n", "bgi", "y", ""}, nil, Answers{Provider: "ollama", Model: "bgi", Agent: "builtin", Commands: "all"}},
		"no model":                    {"", []string{"3", "ollama", "", "7", "1", ""}, nil, Answers{Provider: "ollama", Model: "big", Agent: "builtin", Commands: "all"}},
		"a model by a wrong number":   {"", []string{"3", "ollama", "7", "2", ""}, nil, Answers{Provider: "ollama", Model: "small", Agent: "builtin", Commands: "all"}},
		"no list":                     {"", []string{"3", "openai", "sk-wrong-key", "m", ""}, nil, Answers{Provider: "openai", APIKey: "sk-wrong-key", Model: "m", Agent: "builtin", Commands: "all"}},
		"a key in the environment":    {"", []string{"3", "openai", "", "big", "none"}, []string{"OPENAI_API_KEY=sk-12345678"}, Answers{Provider: "openai", Model: "big", Agent: "builtin", Commands: "none"}},
		"whose key is there":          {"", []string{"3", "", "", "big", ""}, []string{"GROQ_API_KEY=sk-12345678"}, Answers{Provider: "groq", Model: "big", Agent: "builtin", Commands: "all"}},
		"a key must be":               {"", []string{"3", "openai", "", "sk-12345678", "big", ""}, nil, Answers{Provider: "openai", APIKey: "sk-12345678", Model: "big", Agent: "builtin", Commands: "all"}},
		"everything stays with Enter": {existing, []string{"", "", "", "", ""}, []string{"MY_KEY=sk-12345678"}, Answers{Provider: "openai", Agent: "builtin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, c.environ...)
			require.NoError(t, s.read([]byte(c.before)))
			person := &scripted{answers: c.answers}
			var said strings.Builder
			got, err := s.Dialog(t.Context(), person, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }, Answers{})
			require.NoError(t, err, "%q\n%s", person.asked, said.String())
			require.Equal(t, c.want, got)
			require.Empty(t, person.answers)
			prosetest.Text(t, said.String())
			require.NotContains(t, said.String(), "embedding", "no conversation can be held with it")
			text, err := s.Text([]byte(c.before), got)
			require.NoError(t, err)
			if c.before != "" {
				require.Equal(t, c.before, string(text), "Enter changes nothing")
			}
		})
	}
}

// Leaving the dialog changes nothing, and reports the reason.
func TestDialogThatEnds(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	require.NoError(t, s.Open())
	_, err := s.Dialog(t.Context(), &scripted{answers: []string{"3", "ollama"}}, func(string, ...any) {}, Answers{})
	require.ErrorIs(t, err, ErrNoMore)
	require.NoFileExists(t, s.Dirs.Config())
}

func TestMissingSaysWhich(t *testing.T) {
	t.Parallel()
	_, err := newSetup(t).Text(nil, Answers{Provider: "openai", Model: "m"})
	var e *protocol.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, protocol.CodeUsage, e.Code)
	require.Contains(t, e.Hints[0], "OPENAI_API_KEY")
}

func TestYesGuessesNoProvider(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	require.NoError(t, s.Open())
	_, err := s.Dialog(context.Background(), &Agreeing{}, func(string, ...any) {}, Answers{Agent: "builtin"})
	prosetest.Error(t, err)
}

// Setup reports the model that it replaced.
func TestReplaced(t *testing.T) {
	t.Parallel()
	old := protocol.SetupReplaced{Alias: "fast", Provider: "openai", Model: "small", BaseURL: "https://example.test/v1"}
	for name, c := range map[string]struct {
		answers Answers
		want    *protocol.SetupReplaced
	}{
		"a model":    {Answers{Provider: "ollama", Model: "llama"}, &old},
		"an address": {Answers{Provider: "openai", BaseURL: "https://other.test/v1"}, &old},
		"nothing":    {Answers{Provider: "openai", Model: "small", BaseURL: "https://example.test/v1"}, nil},
		"an agent":   {Answers{Agent: "mock"}, nil},
	} {
		s := newSetup(t)
		_, err := s.Text([]byte(existing), c.answers)
		require.NoError(t, err)
		require.Equal(t, c.want, s.Replaced, name)
	}
}
