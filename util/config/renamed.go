package config

import "strings"

// renamedKeys has the keys of config.yaml from before the first release, each with the one
// that took its place; path is where the key stands.
func renamedKeys(path string) map[string]string {
	keys := map[string]string{
		"onLimit": "onRateLimit", "maxPark": "maxRateLimitWait", "ends": "expiresIn", "maxFile": "maxFileMB",
	}
	where := ""
	if path == "builtin" {
		where = ", at the top level,"
	}
	if path == "builtin" || path == "commands" || strings.HasPrefix(path, "agents.") {
		for old, now := range map[string]string{
			"confine": "mode", "hide": "denyRead", "allowRead": "allowRead", "allowWrite": "allowWrite", "ipc": "sharedMemory", "caches": "caches",
		} {
			keys[old] = "sandbox." + now + where
		}
	}
	return keys
}

// renamedWords is renamedKeys for values.
func renamedWords() map[string]string {
	return map[string]string{
		"bypass": "full", "readonly": "read-only", "here": "in-place", "off": "none",
		"failed": "error", "ended": "completed", "budget": "limit",
	}
}
