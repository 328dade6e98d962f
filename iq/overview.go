package iq

import "net/http"

// serveStores tells who has the stores.
func (s *Service) serveStores(w http.ResponseWriter, _ *http.Request) {
	snapshot := s.router.Snapshot()
	type route struct {
		Partition int32    `json:"partition"`
		Active    string   `json:"active,omitempty"`
		Standbys  []string `json:"standbys,omitempty"`
	}
	out := make(map[string][]route)
	for _, name := range snapshot.Stores() {
		routes := []route{}
		for _, known := range snapshot.stores[name].byPartition {
			r := route{Partition: known.Partition}
			if known.HasActive() {
				r.Active = known.Active.String()
			}
			for _, standby := range known.Standbys {
				r.Standbys = append(r.Standbys, standby.String())
			}
			routes = append(routes, r)
		}
		out[name] = routes
	}
	s.writeJSON(w, http.StatusOK, out)
}

// serveHosts tells what the instances have.
func (s *Service) serveHosts(w http.ResponseWriter, _ *http.Request) {
	type host struct {
		Endpoint      string   `json:"endpoint"`
		Stores        []string `json:"stores"`
		StandbyStores []string `json:"standbyStores"`
	}
	out := []host{}
	for _, h := range s.router.Snapshot().Hosts {
		out = append(out, host{h.Endpoint.String(), h.Stores, h.StandbyStores})
	}
	s.writeJSON(w, http.StatusOK, out)
}

// serveLags tells how far the stores here are behind.
func (s *Service) serveLags(w http.ResponseWriter, r *http.Request) {
	ctx, cancel, err := s.within(r, r.URL.Query().Get("timeout"))
	if err == nil {
		defer cancel()
		var lags []Lag
		if lags, err = s.Lags(ctx); err == nil {
			s.writeJSON(w, http.StatusOK, lags)
			return
		}
	}
	s.writeError(w, err)
}
