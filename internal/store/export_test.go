package store

// Queued returns how many units wait in the first lane.
func (c *Committer) Queued() int {
	c.lanes[0].mu.Lock()
	defer c.lanes[0].mu.Unlock()
	return len(c.lanes[0].queue)
}

// LaneOf is which lane an order goes through.
var LaneOf = laneOf
