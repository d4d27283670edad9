package putback

import (
	"bytes"
	"encoding/json"
	"maps"
)

// obeyedKeys are those of Claude Code's notes that name programs, or say that nobody
// need be asked about them; in each of its projects as well.
func obeyedKeys() []string {
	return []string{
		"mcpServers", "hooks", "apiKeyHelper", "env", "statusLine", "enabledMcpjsonServers", "enableAllProjectMcpServers",
		"hasTrustDialogAccepted", "hasClaudeMdExternalIncludesApproved", "allowedTools", "bypassPermissionsModeAccepted",
	}
}

type notebook = map[string]json.RawMessage

// tamedNotes returns changed notes with what is obeyed as it was; false: they cannot
// be read.
func tamedNotes(old, changed []byte) (kept []byte, ok bool) {
	var was, is notebook
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(changed, &is) != nil || is == nil {
		return nil, false
	}
	differs := putBackKeys(was, is)
	var wereProjects, projects map[string]notebook
	if is["projects"] != nil {
		_ = json.Unmarshal(was["projects"], &wereProjects) // there were none
		if json.Unmarshal(is["projects"], &projects) != nil {
			return nil, false
		}
		inner := false
		for name, project := range projects {
			inner = putBackKeys(wereProjects[name], project) || inner
		}
		if inner {
			text, err := json.Marshal(projects)
			if err != nil {
				return nil, false
			}
			is["projects"], differs = text, true
		}
	}
	if !differs {
		return changed, true
	}
	kept, err := json.MarshalIndent(is, "", "  ")
	return kept, err == nil
}

// putBackKeys makes what is obeyed as it was, and reports whether it was not.
func putBackKeys(was, is notebook) (differs bool) {
	for _, key := range obeyedKeys() {
		before, after := was[key], is[key]
		switch {
		case sameJSON(before, after), is == nil:
		case before == nil && empty(after): // as a program notes a project first
		case before == nil:
			delete(is, key)
			differs = true
		default:
			is[key], differs = before, true
		}
	}
	return differs
}

// empty reports whether a value names nothing and allows nothing.
func empty(value json.RawMessage) bool {
	text := string(bytes.TrimSpace(value))
	return text == "{}" || text == "[]" || text == "false" || text == "null" || text == `""`
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if a == nil || b == nil || json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return a == nil && b == nil
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// sameSettings reports whether settings in JSON differ in nothing but the schema that they
// name for editors, which programs add by themselves. No settings are as none.
func sameSettings(old, changed []byte) bool {
	was, is := notebook{}, notebook{}
	if len(old) > 0 && json.Unmarshal(old, &was) != nil || json.Unmarshal(changed, &is) != nil {
		return false
	}
	delete(was, "$schema")
	delete(is, "$schema")
	return maps.EqualFunc(was, is, sameJSON)
}
