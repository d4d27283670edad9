package heads

// generations bounds how deep children are looked for.
const generations = 100

// Family are threads with all that play a part of one of them, or of one of their
// children.
func Family(facts map[string]Facts, threads []string) map[string]bool {
	family := make(map[string]bool, len(threads))
	for _, id := range threads {
		family[id] = true
	}
	if len(family) == 0 {
		return family
	}
	var found []string
	for id, f := range facts {
		for range generations {
			if f.Parent == nil {
				break
			}
			if family[f.Parent.Thread] {
				found = append(found, id)
				break
			}
			f = facts[f.Parent.Thread]
		}
	}
	for _, id := range found {
		family[id] = true
	}
	return family
}

// RootOf is the thread that is nobody's child, and of which a thread plays a part of a
// part; the thread itself, if it plays none.
func RootOf(facts map[string]Facts, thread string) string {
	for range generations {
		parent := facts[thread].Parent
		if parent == nil {
			break
		}
		thread = parent.Thread
	}
	return thread
}
