// Package gitfile fetches workflow files from git repositories. Nothing of a repository
// takes effect: no work tree is made, so that neither hooks nor filters nor its config
// have a part, and one file is read out of the objects.
package gitfile

import (
	"path"
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Address is a file of a git repository at a ref.
type Address struct {
	URL, Path, Ref string
	Text           string // as it was typed
}

// Is reports whether a person means such an address, well or badly written.
func Is(text string) bool {
	return strings.HasPrefix(text, "github:") || strings.Contains(text, "://") || strings.HasPrefix(text, "git@")
}

// Parse reads github:owner/repo//path.yaml@ref, or the URL of any repository with
// //path.yaml@ref behind it. Without @ref it is the repository's HEAD. Errors are
// *protocol.Error (code usage).
func Parse(text string) (Address, error) {
	if holdsPassword(text) {
		return Address{}, &protocol.Error{
			Code: protocol.CodeUsage, Message: "the address of a workflow is shown, and kept in lock.yaml: it may hold no name and no password",
			Hints: []string{"leave them out, and let git know them: git help credentials"},
		}
	}
	a := Address{Text: text, Ref: "HEAD"}
	at := strings.LastIndex(text, "//")
	if at <= 0 || strings.HasSuffix(text[:at], ":") {
		return a, wrong(text, "the file in the repository is missing")
	}
	a.URL, a.Path = text[:at], text[at+2:]
	if file, ref, found := strings.Cut(a.Path, "@"); found {
		a.Path, a.Ref = file, ref
	}
	if repo, short := strings.CutPrefix(a.URL, "github:"); short {
		if !matches(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`, repo) {
			return a, wrong(text, repo+" is not owner/repo")
		}
		a.URL = "https://github.com/" + repo
	}
	switch {
	case !matches(`^(https://|ssh://|file:///|git@)[^\s]+$`, a.URL):
		return a, wrong(text, "the repository must begin with github:, https://, ssh://, git@ or file:///")
	case !matches(`^[A-Za-z0-9._][A-Za-z0-9._/+-]*\.ya?ml$`, a.Path) || strings.HasPrefix(path.Clean(a.Path), ".."):
		return a, wrong(text, "the file in the repository must be a path to a .yaml file")
	case !matches(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`, a.Ref) || strings.Contains(a.Ref, ".."):
		return a, wrong(text, "the name behind @ is not a tag, branch or commit")
	}
	return a, nil
}

// holdsPassword reports whether a URL says who asks: for all but ssh even a name alone
// may be a token.
func holdsPassword(text string) bool {
	scheme, url, found := strings.Cut(text, "://")
	if !found {
		return false
	}
	if at := strings.LastIndex(url, "//"); at >= 0 {
		url = url[:at]
	} else {
		url, _, _ = strings.Cut(url, "/")
	}
	at := strings.LastIndex(url, "@")
	return at >= 0 && (scheme != "ssh" || strings.Contains(url[:at], ":"))
}

func matches(pattern, text string) bool {
	const longest = 1000
	return len(text) <= longest && regexp.MustCompile(pattern).MatchString(text)
}

func wrong(text, why string) error {
	return &protocol.Error{
		Code: protocol.CodeUsage, Message: text + " is not the address of a workflow: " + why,
		Hints: []string{"github:owner/repo//path/to/name.yaml@v1", "https://host/repo.git//path/to/name.yaml@v1"},
	}
}
