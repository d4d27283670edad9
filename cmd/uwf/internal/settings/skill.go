package settings

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
)

// skillStart begins every version of the uwf skill. A file that begins otherwise is the user's.
const skillStart = "---\nname: uwf\n"

// skillFiles returns where agents look for the uwf skill: Claude Code in its own directory, Codex,
// Gemini CLI, opencode and others in ~/.agents.
func (a Commands) skillFiles() []string {
	user := cmp.Or(a.Env.Get("HOME"), a.Env.Get("USERPROFILE"))
	if user == "" {
		return nil
	}
	claude := cmp.Or(a.Env.Get("CLAUDE_CONFIG_DIR"), filepath.Join(user, ".claude"))
	var files []string
	for _, dir := range []string{claude, filepath.Join(user, ".agents")} {
		files = append(files, filepath.Join(a.Env.Path(dir), "skills", "uwf", "SKILL.md"))
	}
	return files
}

// offerSkill asks whether to install the skill where it is missing or out of date.
func (a Commands) offerSkill(ctx context.Context, p setup.Person) (bool, error) {
	if _, ok := p.(setup.Terminal); !ok { // --yes writes nothing outside the home
		return false, nil
	}
	for _, file := range a.skillFiles() {
		text, err := os.ReadFile(file)
		if err == nil && (string(text) == guide.Skill() || !strings.HasPrefix(string(text), skillStart)) {
			continue
		}
		answer, err := p.Line(ctx, "Install a skill that teaches Claude Code, Codex and other agents to use uwf? [y/N] ")
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y"), err
	}
	return false, nil
}

// installSkill writes the skill, and returns the files that it wrote. A file that isn't a version
// of this skill stays.
func (a Commands) installSkill() (written []string, err error) {
	for _, file := range a.skillFiles() {
		switch text, err := os.ReadFile(file); {
		case err == nil && !strings.HasPrefix(string(text), skillStart):
			a.Messagef("uwf: warning: %s is not a skill of uwf and stays", file)
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return written, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return written, err
		}
		if err := durable.WriteFile(durable.OS(), file, []byte(guide.Skill()), 0o644); err != nil {
			return written, err
		}
		written = append(written, file)
	}
	return written, nil
}

func printSkills(w *term.Page, files []string) {
	for _, file := range files {
		w.Printf("Skill:   %s\n", plaintext.Line(file))
	}
}
