// Runs in the pages of MiniWoB++, after their core.js. Seeds the random numbers with `?seed=` of the URL,
// so that an episode can be repeated; sets the time limit to a day, because slow machines must not fail;
// hides the display of rewards; and reports the text of the task and the reward to the server.
/* global core, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON */

(() => {
  const seed = core.QueryString.seed || '0';
  const report = (facts) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/report?episode=' + core.QueryString.episode, false);
    request.send(JSON.stringify(facts));
  };
  const { startEpisode, startEpisodeReal, endEpisode } = core;
  Math.seedrandom(seed);
  core.startEpisode = function () {
    startEpisode();
    core.hideDisplay();
  };
  core.startEpisodeReal = function () {
    core.EPISODE_MAX_TIME = 86400000;
    Math.seedrandom(seed);
    startEpisodeReal();
    const utterance = core.getUtterance();
    report({ utterance: typeof utterance === 'string' ? utterance : utterance.utterance });
  };
  core.endEpisode = function (...rest) {
    const running = core.EP_TIMER !== null;
    endEpisode(...rest);
    if (running) report({ reward: WOB_RAW_REWARD_GLOBAL, reason: String(WOB_REWARD_REASON || '') });
  };
})();
