package offlimits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// guard are the places that may be read and not be written, nor made, in a workspace
// that holds the home directory: what is hidden there, since a list of what programs
// obey when its owner logs in, opens a shell or types a command never ends; what is
// in the PATH; and what these lead to, if they are links. Caches are not on the list,
// but their directories are writable by name.
func (o Options) guard(l List) (places []string) {
	dir, home := o.resolve(o.Dir), o.resolve(o.UserHome)
	if dir == "" || home == "" || !within(dir, home) {
		return nil
	}
	named := o.hiddenIn(home)
	for _, name := range []string{".profile", ".cache", "bin", "go/bin", ".local/bin", "Library/LaunchAgents"} { // also where they are not yet
		named = append(named, filepath.Join(home, filepath.FromSlash(name)))
	}
	for _, path := range append(named, filepath.SplitList(o.Path)...) {
		for _, place := range []string{path, o.resolve(path)} {
			if filepath.IsAbs(place) && within(dir, place) && !within(place, home) && !slices.Contains(places, place) && !covered(l.hidden, place) && !covered(l.writable, place) {
				places = append(places, place)
			}
		}
	}
	return places
}

// hiddenIn is what is hidden directly in a home, and the links in its settings: people
// keep the files themselves in a repository of theirs.
func (o Options) hiddenIn(home string) (paths []string) {
	entries, _ := os.ReadDir(home) // what cannot be listed is closed to commands as well
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(home, e.Name()))
		}
	}
	for _, pattern := range []string{".config/*", ".config/*/*", ".config/systemd/user/*", ".local/bin/*", "bin/*"} {
		found, _ := filepath.Glob(filepath.Join(home, filepath.FromSlash(pattern))) // the pattern is a right one
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// guarded returns an error for a path that is such a place or is in one.
func (l List) guarded(path string) error {
	for _, g := range l.guards {
		if within(folded(g), folded(path)) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: it says what runs when its owner logs in or types a command. Leave it as it is, and say in your answer what should be changed", g)
		}
	}
	return nil
}

// dotted returns an error for what is hidden in the home directory, if the workspace
// holds that; also for what is not there yet.
func (l List) dotted(path string) error {
	if l.user == "" || !within(folded(l.user), folded(path)) || covered(l.writable, path) {
		return nil
	}
	rel, err := filepath.Rel(folded(l.user), folded(path))
	if err != nil || rel == "." || !strings.HasPrefix(rel, ".") {
		return nil
	}
	return fmt.Errorf("%s is off limits: hidden files of a home directory say what programs do. Leave it as it is, and say in your answer what should be changed (a person can allow it: sandbox.allowWrite in config.yaml)", path)
}

// folded is a path as a file system may see it; see plain.
func folded(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, part := range parts {
		parts[i] = plain(part)
	}
	return filepath.FromSlash(strings.Join(parts, "/"))
}
