package guide

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed help/*.txt
var topics embed.FS

// Topics are the names of what `uwf help` tells besides commands, sorted.
func Topics() []string {
	var names []string
	files, _ := fs.Glob(topics, "help/*.txt") // the pattern is right, and the files are in the program
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "help/"), ".txt"))
	}
	return names
}

// Topic is such a text.
func Topic(name string) (text string, ok bool) {
	data, err := topics.ReadFile("help/" + name + ".txt")
	return string(data), err == nil
}
