package offlimits

import (
	"path"
	"path/filepath"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/worktree"
	"github.com/united-workforce/uwf/utilagent/box/gitindex"
)

// Bounds of what is read of git's lists of files.
const (
	maxGitlinks = 2000
)

// gitlinks are the repositories that a repository knows within its work tree, such as
// submodules, by slash-separated path, and those within them. They are watched however
// large the tree is.
func gitlinks(workspace, at string, depth int) (found []string) {
	git, _, ok := worktree.Dirs(filepath.Join(workspace, filepath.FromSlash(at)))
	if !ok || depth > maxIncludeDepth {
		return nil
	}
	index, err := careful.ReadFile(filepath.Join(git, "index"), gitindex.MaxBytes, careful.NoFollow)
	if err != nil {
		return nil
	}
	for _, e := range gitindex.Entries(index) {
		if name := path.Join(at, e.Name); e.Link && filepath.IsLocal(filepath.FromSlash(name)) && len(found) < maxGitlinks {
			found = append(found, name)
			found = append(found, gitlinks(workspace, name, depth+1)...)
		}
	}
	return found
}
