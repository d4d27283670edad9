package offlimits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// starts are what says, below a home directory, which programs run when its owner
// logs in, opens a shell, types a command or uses git, and who else may log in. In a
// workspace that holds the home they may be read, but not written, nor made.
func starts() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc",
		".inputrc", ".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".pam_environment", ".forward", ".vimrc", ".vim", ".emacs", ".emacs.d", ".tmux.conf", ".screenrc",
		".gdbinit", ".lldbinit", ".pythonrc", ".direnvrc", ".npmrc", ".gitconfig", ".config/git", ".ssh", ".gnupg", ".aws", ".kube", ".docker",
		".local/bin", "bin", "go/bin", ".cargo/bin", ".cargo/config.toml", ".cargo/config", ".cargo/env", ".config/fish", ".config/zsh", ".config/nvim", ".config/direnv",
		".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/systemd", ".local/share/applications", ".local/share/dbus-1",
		"Library/LaunchAgents",
	}
}

// guard are the places of [starts], if the workspace holds the home directory; with
// what they lead to, if they are links.
func (o Options) guard(l List) (places []string) {
	dir, home := o.resolve(o.Dir), o.resolve(o.UserHome)
	if dir == "" || home == "" || !within(dir, home) {
		return nil
	}
	for _, name := range starts() {
		path := filepath.Join(home, filepath.FromSlash(name))
		for _, place := range []string{path, o.resolve(path)} {
			if place != "" && !slices.Contains(places, place) && !covered(l.hidden, place) && !covered(l.writable, place) {
				places = append(places, place)
			}
		}
	}
	return places
}

// guarded returns an error for a path that is such a place or lies in one.
func (l List) guarded(path string) error {
	for _, g := range l.guards {
		if within(folded(g), folded(path)) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: it says what runs when its owner logs in or types a command. Leave it as it is, and say in your answer what should be changed", g)
		}
	}
	return nil
}

// dotted returns an error for what is hidden in the home directory, if the workspace
// holds that: a list of what programs obey there, such as [starts], never ends. It
// is for file tools, which ask for each path.
func (l List) dotted(path string) error {
	if l.user == "" || !within(folded(l.user), folded(path)) || covered(l.writable, path) {
		return nil
	}
	rel, err := filepath.Rel(folded(l.user), folded(path))
	if err != nil || rel == "." || !strings.HasPrefix(rel, ".") {
		return nil
	}
	return fmt.Errorf("%s is off limits: hidden files of a home directory say what programs do. Leave it as it is, and say in your answer what should be changed (a person can allow it: builtin.allowWrite in config.yaml)", path)
}

// folded is a path as a file system may see it; see plain.
func folded(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, part := range parts {
		parts[i] = plain(part)
	}
	return filepath.FromSlash(strings.Join(parts, "/"))
}

// Held are the places that commands must not write, and those of them that they may
// read, such as confine.Rules wants them. Places that are not there cannot be made.
func (l List) Held() (hidden, readable []string) {
	readable = slices.Clone(l.readable)
	for _, g := range l.guards {
		if _, err := os.Stat(g); err == nil {
			readable = append(readable, g)
		}
	}
	return append(slices.Clone(l.hidden), l.guards...), readable
}
