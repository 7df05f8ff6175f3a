// Light or dark: as the system has it, unless a person has chosen.
const NAME = 'agentctl.theme';
const THEMES = ['system', 'light', 'dark'];

export const themeNow = () => THEMES.find((one) => one === localStorage.getItem(NAME)) ?? 'system';
/** @param {string} theme */
export const themeWords = (theme) => (theme === 'system' ? 'as the system has them' : theme);

export function applyTheme() {
  const theme = themeNow();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const isDark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  const colour = isDark ? '#15171b' : '#fbfbfa';
  document.querySelectorAll('meta[name=theme-color]').forEach((meta) => meta.setAttribute('content', colour));
}

export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
  localStorage.setItem(NAME, next);
  applyTheme();
  return next;
}
